"""What must be said before JAX starts: how many devices, where compiled programs stay, what becomes of freed memory."""

import ctypes
import os
import sys
import traceback

from data.errors import UserError
from data.preparing.runners import cores
from train.config import RunConfig

PATIENCE = (
    '--xla_cpu_collective_call_warn_stuck_timeout_seconds=3600',
    '--xla_cpu_collective_call_terminate_timeout_seconds=86400',
)
"""CPU devices wait for each other as long as a laptop sleeps: XLA would end the process after 40 seconds."""
PROCESSES = ('JAX_COORDINATOR_ADDRESS', 'JAX_NUM_PROCESSES', 'JAX_PROCESS_ID')
"""Say that a run has several processes, where no TPU slice says it: HOST:PORT of the first, how many, and which one."""
LOST = 100
"""Seconds after which a process that does not answer counts as dead, and the others end."""


def prepare(run: RunConfig, replicas: int) -> None:
    """Applies a run's devices and compilation cache. To be called before anything touches a device."""
    flags = [flag for flag in os.environ.get('XLA_FLAGS', '').split() if 'host_platform_device_count' not in flag]
    flags += [f'--xla_force_host_platform_device_count={cpu_devices(run, replicas)}', *PATIENCE]
    os.environ['XLA_FLAGS'] = ' '.join(dict.fromkeys(flags))
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
    _keep_freed_memory()
    import jax

    if run.compilation_cache:
        jax.config.update('jax_compilation_cache_dir', os.path.abspath(run.compilation_cache))
        jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.5)


def join() -> None:
    """Joins the processes of a run on several hosts. To be called after `prepare`; alone, it does nothing.

    Raises:
      UserError: the environment says by halves that there are several.
    """
    import jax

    stated = {name: os.environ[name] for name in PROCESSES if os.environ.get(name)}
    if stated:
        where = _stated(stated)
        jax.config.update('jax_cpu_collectives_implementation', 'gloo')
    elif 'tpu' in (jax.config.jax_platforms or ''):  # as JAX itself sets it where it finds TPU chips
        where = {}
    else:
        return
    # Signals are train.preemption's.
    jax.config.update('jax_enable_preemption_service', False)
    try:
        jax.distributed.initialize(**where, heartbeat_timeout_seconds=LOST, shutdown_timeout_seconds=LOST)
    except ValueError:  # a TPU, but of no slice that JAX knows of
        if where:
            raise
        return
    sys.excepthook = _end_at_once


def _stated(stated: dict[str, str]) -> dict:
    """Arguments of `jax.distributed.initialize`."""
    if missing := [name for name in PROCESSES if name not in stated]:
        raise UserError(f'{", ".join(stated)} is set and {", ".join(missing)} is not: set all three, or none')
    address, count, number = (stated[name] for name in PROCESSES)
    if not address.rpartition(':')[2].isdecimal() or ':' not in address:
        raise UserError(f'{PROCESSES[0]} {address}: give the first process as HOST:PORT')
    if not (count.isdecimal() and number.isdecimal() and int(number) < int(count)):
        raise UserError(f'{PROCESSES[1]} {count}, {PROCESSES[2]} {number}: processes are numbered from 0 to below that')
    return {'coordinator_address': address, 'num_processes': int(count), 'process_id': int(number)}


def _end_at_once(kind, error, trace) -> None:
    """Ends a process of several after an error: on its way out JAX would wait for the others, which wait for it."""
    traceback.print_exception(kind, error, trace)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def cpu_devices(run: RunConfig, replicas: int) -> int:
    """Devices that the CPU is split into: replicas side by side, and what cores are left divide each one's batch.

    Small models leave a second thread of one device idle, so a device a core is faster (docs/performance.md).
    """
    side_by_side = min(cores(), replicas)
    return run.devices or side_by_side * (cores() // side_by_side)


def _keep_freed_memory() -> None:
    """Has glibc keep what is freed.

    XLA takes its working memory anew for each step. Returned to the system and zeroed page by page at the next step, it
    costs a quarter of the speed of small models (docs/performance.md).
    """
    arenas, mmap_threshold, trim_threshold = -8, -3, -1  # M_ARENA_MAX and so on, of malloc.h
    mallopt = getattr(ctypes.CDLL(None), 'mallopt', None)
    if mallopt is not None:
        # An arena of a thread's own ends at 64 MB and maps what is larger; the main one has no end.
        for option, value in ((arenas, 1), (mmap_threshold, 1 << 30), (trim_threshold, (1 << 31) - 1)):
            mallopt(option, value)
