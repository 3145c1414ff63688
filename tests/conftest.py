"""What holds for every test: CPU only, no silent rank promotion, and quick compilation."""

import os

from experiments.devices import QUICK

os.environ.setdefault('JAX_PLATFORMS', 'cpu')
os.environ.setdefault('HF_HUB_OFFLINE', '1')
os.environ.setdefault('JAX_NUMPY_RANK_PROMOTION', 'raise')
# Tests compile far more than they compute: so it takes a ninth of the time.
os.environ['XLA_FLAGS'] = ' '.join([os.environ.get('XLA_FLAGS', ''), *QUICK])
