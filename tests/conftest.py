"""What holds for every test: CPU only, no silent rank promotion, quick compilation; and in which order they run."""

import gc
import os
from pathlib import Path

from experiments.devices import GARBAGE, QUICK

os.environ.setdefault('JAX_PLATFORMS', 'cpu')
os.environ.setdefault('HF_HUB_OFFLINE', '1')
os.environ.setdefault('JAX_NUMPY_RANK_PROMOTION', 'raise')
# Tests compile far more than they compute: so it takes a ninth of the time.
os.environ['XLA_FLAGS'] = ' '.join([os.environ.get('XLA_FLAGS', ''), *QUICK])
gc.set_threshold(*GARBAGE)

COMMANDS = Path(__file__).parent / 'integration'
SHARDING = Path(__file__).parent / 'train' / 'test_sharding_devices.py'


def pytest_collection_modifyitems(items) -> None:
    """First what waits longest for one fixture, so that no worker is left with it at the end. Then whole commands, so
    that one worker has nearly all: they share a finished run and its compiled programs."""
    items.sort(key=lambda item: (item.path != SHARDING, COMMANDS not in item.path.parents))
