"""Logits, loss and gradients against `transformers`, from arrays that make_goldens.py stored."""

from pathlib import Path

import numpy as np
import pytest

from tests.model.parity_case import CONFIGS, Inputs, assert_close, from_reference, outputs

GOLDENS = Path(__file__).parent / 'goldens'


@pytest.mark.parametrize('name', CONFIGS)
def test_equals_transformers(name):
    config = CONFIGS[name]
    stored = np.load(GOLDENS / f'{name}.npz')

    def tree(kind):
        tensors = {key.removeprefix(kind): stored[key] for key in stored.files if key.startswith(kind)}
        return from_reference(tensors, config)

    found = outputs(tree('weight/'), config, Inputs(*(stored[key] for key in Inputs._fields)))
    expected = {key: stored[key] for key in ('hidden', 'logits', 'loss')} | {'gradients': tree('gradient/')}
    assert float(np.abs(expected['logits']).max()) > 1
    assert_close(found, expected)
