"""Logits, loss and gradients against `transformers`, from arrays that make_goldens.py stored."""

import numpy as np
import pytest

from tests.model.parity_case import CONFIGS, assert_close, from_reference, golden, outputs


@pytest.mark.parametrize('name', CONFIGS)
def test_equals_transformers(name):
    config = CONFIGS[name]
    weights, inputs, expected = golden(name, lambda tensors: from_reference(tensors, config))
    assert float(np.abs(expected['logits']).max()) > 1
    assert_close(outputs(weights, config, inputs), expected)
