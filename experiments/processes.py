"""The processes of a run on several hosts, one a host, find each other: to be settled before JAX touches a device."""

import os
import sys
import traceback

from data.errors import UserError

STATED = ('JAX_COORDINATOR_ADDRESS', 'JAX_NUM_PROCESSES', 'JAX_PROCESS_ID')
"""Say that a run has several processes, where no TPU slice says it: HOST:PORT of the first, how many, and which one."""
LOST = 100
"""Seconds after which a process that does not answer counts as dead, and the others end."""


def join() -> None:
    """Joins the processes of a run; where there is one it does nothing. To be called after `devices.prepare`.

    Raises:
      UserError: the environment says by halves that there are several.
    """
    import jax

    given = {name: os.environ[name] for name in STATED if os.environ.get(name)}
    where = _stated(given) if given else {}
    if given:
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
    if ':' not in address or not address.rpartition(':')[2].isdecimal():
        raise UserError(f'{STATED[0]} {address}: give the first process as HOST:PORT')
    if not (count.isdecimal() and number.isdecimal() and int(number) < int(count)):
        raise UserError(f'{STATED[1]} {count}, {STATED[2]} {number}: number them from 0 to below their count')
    return {'coordinator_address': address, 'num_processes': int(count), 'process_id': int(number)}


def _end_at_once(kind, error, trace) -> None:
    """Ends a process of several after an error: on its way out JAX would wait for the others, which wait for it."""
    traceback.print_exception(kind, error, trace)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)
