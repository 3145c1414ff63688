"""What holds for every test: CPU only, no silent rank promotion, and quick compilation."""

import os

os.environ.setdefault('JAX_PLATFORMS', 'cpu')
os.environ.setdefault('HF_HUB_OFFLINE', '1')
os.environ.setdefault('JAX_NUMPY_RANK_PROMOTION', 'raise')
# Tests compile far more than they compute; without LLVM's optimisations that takes a third of the time, and without
# the CPU's fusion emitters a third of that.
os.environ['XLA_FLAGS'] = ' '.join(
    [
        os.environ.get('XLA_FLAGS', ''),
        '--xla_backend_optimization_level=0',
        '--xla_cpu_use_fusion_emitters=false',
    ]
)
