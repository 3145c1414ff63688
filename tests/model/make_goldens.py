"""Makes the arrays in goldens/ that test_parity.py compares with: python -m tests.model.make_goldens

Each file holds a small model's random weights, inputs, and what `transformers` (PyTorch, in float64) makes of them.
Needs torch and transformers (requirements-peers.in). Run it again when tests/model/parity_case.py changes.
"""

from pathlib import Path

import numpy as np

from tests.model.parity_case import CONFIGS, make_inputs
from tests.model.transformers_models import build, run, tensors

FOLDER = Path(__file__).parent / 'goldens'


def main() -> None:
    for name, config in CONFIGS.items():
        model = build(name, config)
        arrays = {f'weight/{key}': value for key, value in tensors(name, model).items()}
        inputs = make_inputs(config, batch=5, length=16, targets=4)
        arrays |= inputs._asdict()
        results = run(name, model.double(), inputs)
        arrays |= {f'gradient/{key}': value for key, value in results.pop('gradients').items()} | results
        np.savez_compressed(FOLDER / f'{name}.npz', **arrays)


if __name__ == '__main__':
    main()
