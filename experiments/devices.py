"""What must be said before JAX starts: how many devices, where compiled programs stay, what becomes of freed memory."""

import ctypes
import gc
import os
from glob import glob
from importlib.metadata import version
from importlib.util import find_spec

from data.errors import UserError
from data.preparing.runners import cores
from train.config import RunConfig

PATIENCE = (
    '--xla_cpu_collective_call_warn_stuck_timeout_seconds=3600',
    '--xla_cpu_collective_call_terminate_timeout_seconds=86400',
)
"""CPU devices wait for each other as long as a laptop sleeps: XLA would end the process after 40 seconds."""

_HAS_EMITTERS = tuple(map(int, version('jaxlib').split('.')[:2])) < (0, 11)
QUICK = ('--xla_backend_optimization_level=0', *(['--xla_cpu_use_fusion_emitters=false'] if _HAS_EMITTERS else []))
"""No LLVM passes, and no fusions through MLIR. jaxlib ends the process at a flag that it has no more."""

GARBAGE = (20_000, 10, 10)
"""For `gc.set_threshold`. Tracing makes objects by the million, hardly any of them garbage: to look for it after every
700 took a tenth of a start."""

ACCELERATORS = '/dev/accel*', '/dev/vfio/[0-9]*', '/dev/nvidia*'
"""Device files of TPUs and of NVIDIA's GPUs."""


def prepare(run: RunConfig, replicas: int) -> None:
    """Applies a run's devices and compilation cache. To be called before anything touches a device.

    Raises:
      UserError: the cache is a file.
    """
    flags = [flag for flag in os.environ.get('XLA_FLAGS', '').split() if 'host_platform_device_count' not in flag]
    flags += [f'--xla_force_host_platform_device_count={cpu_devices(run, replicas)}', *PATIENCE]
    flags += QUICK if run.quick_compile else ()
    os.environ['XLA_FLAGS'] = ' '.join(dict.fromkeys(flags))
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
    _keep_freed_memory()
    gc.set_threshold(*GARBAGE)
    if find_spec('libtpu') and not any(map(glob, ACCELERATORS)):
        # Installed to compile for TPUs, it would look for one and warn that there is none.
        os.environ.setdefault('JAX_PLATFORMS', 'cpu')
    import jax

    if run.compilation_cache:
        if os.path.isfile(run.compilation_cache):
            raise UserError(f'--run.compilation_cache {run.compilation_cache} is a file: name a folder')
        jax.config.update('jax_compilation_cache_dir', os.path.abspath(run.compilation_cache))
        jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.5)


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
