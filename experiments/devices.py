"""What must be said to JAX before it starts: how many devices, where compiled programs are kept, what not to print."""

import os

from train.config import RunConfig


def prepare(run: RunConfig, replicas: int) -> None:
    """Applies a run's devices and compilation cache. To be called before anything touches a device.

    On CPU each core is a device, up to one for each replica: small models leave a second thread idle, so replicas side
    by side are faster than one after the other on all cores (docs/performance.md).
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1  # macOS: all
    devices = run.devices or min(cores, replicas)
    flags = [flag for flag in os.environ.get('XLA_FLAGS', '').split() if 'host_platform_device_count' not in flag]
    os.environ['XLA_FLAGS'] = ' '.join([*flags, f'--xla_force_host_platform_device_count={devices}'])
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
    import jax

    if run.compilation_cache:
        jax.config.update('jax_compilation_cache_dir', os.path.abspath(run.compilation_cache))
        jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.5)
