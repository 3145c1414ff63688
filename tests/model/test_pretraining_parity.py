"""Both heads of BERT's pretraining against `transformers`: from arrays that make_goldens.py stored, and live."""

import numpy as np
import pytest

from model.config import SIZES, ModelConfig
from tests.model.parity_case import assert_close, golden, make_inputs
from tests.model.pretraining_case import CONFIGS, found, from_reference, pair_labels


def test_equals_transformers():
    """`BertForPreTraining`: logits of tokens and pairs, the summed loss and all gradients."""
    ((name, config),) = CONFIGS.items()
    weights, inputs, expected = golden(name, lambda tensors: from_reference(tensors, config))
    assert 0 < pair_labels(inputs.tokens_BxL).sum() < len(inputs.tokens_BxL)
    assert float(np.abs(expected['pair_logits']).max()) > 0.5
    assert_close(found(weights, config, inputs), expected)


@pytest.mark.peers
@pytest.mark.parametrize('size', ['tiny', 'mini'])
def test_random_weights(size):
    from tests.model.transformers_models import build, run, tensors

    config = ModelConfig(**SIZES[size], max_length=128, vocab_size=1000)
    model = build('bert_pretraining', config)
    inputs = make_inputs(config, batch=6, length=128, targets=20)
    expected = run('bert_pretraining', model, inputs)
    expected['gradients'] = from_reference(expected['gradients'], config)
    assert_close(found(from_reference(tensors('bert_pretraining', model), config), config, inputs), expected)
