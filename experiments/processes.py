"""The processes of a run on several hosts, one a host, find each other: to be settled before JAX touches a device."""

import os
import socket
import sys
import time
import traceback

from data.errors import UserError

STATED = ('JAX_COORDINATOR_ADDRESS', 'JAX_NUM_PROCESSES', 'JAX_PROCESS_ID')
"""Say that a run has several processes, where no TPU slice says it: HOST:PORT of the first, how many, and which one."""
LOST = 100
"""Seconds after which a process that does not answer counts as dead, and the others end."""
PATIENCE = 300
"""Seconds in which the first process must come: hosts are not set up at once."""


def join() -> None:
    """Joins the processes of a run; where there is one it does nothing. To be called after `devices.prepare`.

    Raises:
      UserError: the environment says by halves that there are several, or where the first is cannot be so.
    """
    import jax

    given = {name: os.environ[name] for name in STATED if os.environ.get(name)}
    where = _stated(given) if given else {}
    if given:
        _reachable(**where)
        jax.config.update('jax_cpu_collectives_implementation', 'gloo')
    elif 'tpu' not in (jax.config.jax_platforms or ''):  # JAX puts it there where it finds TPU chips
        return
    # Signals are train.preemption's.
    jax.config.update('jax_enable_preemption_service', False)
    try:
        jax.distributed.initialize(**where, heartbeat_timeout_seconds=LOST, shutdown_timeout_seconds=LOST)
    except ValueError:  # a TPU, but of no slice that JAX knows of
        if given:
            raise
        return
    sys.excepthook = _end_at_once


def alone(command: str) -> None:
    """Refuses to run a command that knows of no other process where there are several; else as `join`.

    Raises:
      UserError: there are several.
    """
    join()
    import jax

    if (count := jax.process_count()) > 1:
        raise UserError(f'{command} runs on one host, and these are {count}: use a slice with one, or no {STATED[1]}')


def _stated(given: dict[str, str]) -> dict:
    """Arguments of `jax.distributed.initialize`."""
    if missing := [name for name in STATED if name not in given]:
        raise UserError(f'{", ".join(given)} is set and {", ".join(missing)} is not: set all three, or none')
    address, count, number = (given[name] for name in STATED)
    port = address.rpartition(':')[2] if ':' in address else ''
    if not port.isdecimal() or not 0 < int(port) < 2**16:
        raise UserError(f'{STATED[0]} {address}: give the first process as HOST:PORT')
    if not (count.isdecimal() and number.isdecimal() and int(number) < int(count)):
        raise UserError(f'{STATED[1]} {count}, {STATED[2]} {number}: number them from 0 to below their count')
    return {'coordinator_address': address, 'num_processes': int(count), 'process_id': int(number)}


def _reachable(coordinator_address: str, num_processes: int, process_id: int) -> None:
    """Says what is waited for, and refuses an address that cannot be the first process's: gRPC would end the process.

    Raises:
      UserError: the port is taken here, or nobody comes to listen at it within `PATIENCE` seconds.
    """
    if num_processes == 1:
        return
    host, _, port = coordinator_address.rpartition(':')
    print(
        f'waiting for the {num_processes} processes of this run at {coordinator_address}', file=sys.stderr, flush=True
    )
    if process_id == 0:
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(('', int(port)))
            except OSError as error:
                raise UserError(
                    f'{STATED[0]} {coordinator_address}: the first process cannot listen there ({error.strerror}): '
                    'give all of them another port'
                ) from None
        return
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((host.strip('[]'), int(port)), timeout=LOST).close()
        except OSError as error:
            if time.monotonic() > until:
                raise UserError(
                    f'{STATED[0]} {coordinator_address}: nobody listens there ({error.strerror or error}): start the '
                    f'first process ({STATED[2]}=0), or name its host'
                ) from None
            time.sleep(0.5)


def _end_at_once(kind, error, trace) -> None:
    """Ends a process of several after an error: on its way out JAX would wait for the others, which wait for it."""
    traceback.print_exception(kind, error, trace)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
