"""Makes the arrays in goldens/ that the tests of parity compare with: python -m tests.model.make_goldens

Each file holds a small model's random weights, inputs, and what `transformers` (PyTorch, in float64) makes of them.
Needs torch and transformers (requirements-peers.in). Run it again when one of the *_case.py changes. With
--check nothing is written: the stored arrays are compared with new ones, and a difference ends in exit code 1.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from model.config import ModelConfig
from tests.model import electra_case, pretraining_case
from tests.model.parity_case import CONFIGS, make_inputs
from tests.model.transformers_models import build, run, tensors

FOLDER = Path(__file__).parent / 'goldens'


def make(name: str, config: ModelConfig) -> dict[str, np.ndarray]:
    model = build(name, config)
    arrays = {f'weight/{key}': value for key, value in tensors(name, model).items()}
    inputs = make_inputs(config, batch=5, length=16, targets=4)
    arrays |= inputs._asdict()
    results = run(name, model.double(), inputs)
    return arrays | {f'gradient/{key}': value for key, value in results.pop('gradients').items()} | results


def differences(path: Path, new: dict[str, np.ndarray]) -> list[str]:
    """What of the stored arrays is not as the new ones are, by name; rounding may differ between machines."""
    if not path.exists():
        return ['the file is missing']
    old = np.load(path)
    found = [f'{key} is in one alone' for key in sorted(set(old.files) ^ new.keys())]
    for key in sorted(set(old.files) & new.keys()):
        a, b = old[key], np.asarray(new[key])
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            found.append(f'{key} is {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}')
        elif not np.allclose(a, b, rtol=1e-5, atol=1e-6):
            found.append(f'{key} differs by {np.abs(np.subtract(a, b, dtype=np.float64)).max():.2g}')
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description='Arrays of `transformers` that test_parity.py compares with.')
    parser.add_argument('--check', action='store_true', help='compare with the stored arrays, write nothing')
    check = parser.parse_args(arguments).check
    wrong = []
    for name, config in (CONFIGS | electra_case.CONFIGS | pretraining_case.CONFIGS).items():
        path, arrays = FOLDER / f'{name}.npz', make(name, config)
        if check:
            wrong += [f'{path.name}: {each}' for each in differences(path, arrays)]
        else:
            np.savez_compressed(path, **arrays)
    if wrong:
        print('\n'.join(wrong) + '\nMake them again: python -m tests.model.make_goldens', file=sys.stderr)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
