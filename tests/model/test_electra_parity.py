"""ELECTRA's two models against `transformers`: from arrays that make_goldens.py stored, and live at real sizes."""

import math

import jax
import numpy as np
import pytest
from flax import linen as nn

from model import electra, mlm
from model.config import SIZES, GeneratorConfig, ModelConfig, generator_model
from tests.model.electra_case import CONFIGS, found, from_reference
from tests.model.parity_case import assert_close, golden, make_inputs


@pytest.mark.parametrize('name', CONFIGS)
def test_equals_transformers(name):
    config = CONFIGS[name]
    weights, inputs, expected = golden(name, lambda tensors: from_reference(tensors, config))
    assert float(np.abs(expected['logits']).std()) > 0.1
    assert_close(found(name, weights, config, inputs), expected)


@pytest.mark.parametrize('size', ['electra_small', 'base', 'large'])
def test_number_of_parameters(size):
    """Clark et al. 2020, Table 1: 14M, 110M, 335M, without a pooler and heads."""
    config = ModelConfig(**SIZES[size], vocab_size=30_522)
    boxes = {name: part for name, part in mlm.declared(config).items() if name != 'head'}
    padding = (config.padded_vocab_size - config.vocab_size) * config.table_width
    count = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(nn.unbox(boxes))) - padding
    assert count == {'electra_small': 13_483_008, 'base': 108_891_648, 'large': 334_092_288}[size]


@pytest.mark.peers
@pytest.mark.parametrize('name', CONFIGS)
def test_random_weights(name):
    """Logits, loss and gradients in float32, at ELECTRA-small's width and length 128."""
    from tests.model.transformers_models import build, run, tensors

    config = ModelConfig(**{**SIZES['electra_small'], 'layers': 3}, max_length=128, vocab_size=1000)
    if name == 'electra_generator':
        config = generator_model(config, GeneratorConfig())
    model = build(name, config)
    inputs = make_inputs(config, batch=6, length=128, targets=20)
    expected = run(name, model, inputs)
    expected['gradients'] = from_reference(expected['gradients'], config)
    ours = from_reference(tensors(name, model), config)
    assert ('detection' in ours) == (name == 'electra_discriminator')
    assert_close(found(name, ours, config, inputs), expected)


@pytest.mark.peers
@pytest.mark.parametrize('size', ['electra_small', 'base', 'large'])
def test_parameters_are_those_of_transformers(size):
    import torch
    from transformers import ElectraConfig, ElectraForPreTraining

    config = ModelConfig(**SIZES[size], vocab_size=30_522)
    with torch.device('meta'):
        reference = ElectraForPreTraining(
            ElectraConfig(
                embedding_size=config.table_width,
                hidden_size=config.width,
                num_hidden_layers=config.layers,
                num_attention_heads=config.heads,
                intermediate_size=config.feed_forward,
            )
        )
    boxes = {name: part for name, part in mlm.declared(config).items() if name != 'head'}
    boxes |= electra.declared_head(config, 'detection')
    padding = (config.padded_vocab_size - config.vocab_size) * config.table_width
    ours = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(nn.unbox(boxes))) - padding
    assert sum(parameter.numel() for parameter in reference.parameters()) == ours
