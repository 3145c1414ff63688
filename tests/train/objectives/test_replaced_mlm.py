"""Replace MLM and all-tokens MLM: what they score, and the copying gate by the plain formula."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from model import electra, mlm
from tests.train.objectives.objective_case import config, gradients, inputs, loss, params
from tests.train.objectives.test_electra import learnt, moved
from tests.train.step_case import SIZE, VOCABULARY
from train.objectives import generation
from train.objectives.all_tokens_mlm import copy_loss
from train.objectives.table import objective_of


@pytest.mark.parametrize('name', ['replace_mlm', 'all_tokens_mlm'])
def test_the_loss_is_that_of_a_plain_loop(name):
    run = config(name)
    weights, rows = params(run), inputs(run)
    read = np.asarray(generation.generate(weights, run, VOCABULARY, rows, jax.random.key(1)).tokens_BxL)
    states = mlm.encode(weights, run.model, jnp.asarray(read), rows.document_ids_BxL)
    logits = np.asarray(mlm.predict(weights, run.model, states), np.float64)[..., :SIZE]
    probabilities = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    text, valid = np.asarray(rows.tokens_BxL), np.asarray(rows.document_ids_BxL) > 0
    if name == 'all_tokens_mlm':
        gates = 1 / (1 + np.exp(-np.asarray(electra.gate(weights, run.model, states), np.float64)))
        scored = list(zip(*np.nonzero(valid), strict=True))
        expected = [
            -np.log(gates[at] * (read[at] == text[at]) + (1 - gates[at]) * probabilities[at][text[at]]) for at in scored
        ]
    else:
        masked = rows.masked
        scored = [(b, int(masked.positions_BxM[b, m])) for b, m in zip(*np.nonzero(masked.weights_BxM), strict=True)]
        expected = [-np.log(probabilities[at][text[at]]) for at in scored]
    sums, metrics = loss(weights, run, rows)
    np.testing.assert_allclose(sums['mlm'], sum(expected), rtol=1e-5)
    assert metrics['mlm_loss'] == (sums['mlm'], len(scored))
    assert objective_of(run).weights(run, rows)['mlm'] == len(scored)
    right = sum(logits[at].argmax() == text[at] for at in scored)
    assert metrics['mlm_accuracy'][0] == right


@pytest.mark.parametrize('name', ['replace_mlm', 'all_tokens_mlm'])
def test_every_parameter_learns_and_none_through_samples(name):
    run = config(name, share='none')
    weights = params(run)
    own = {path for path in learnt(weights) if path.startswith('generator/')}
    found = gradients(weights, run, inputs(run))
    assert moved(found['generator']) == own
    assert moved(found['mlm']) == learnt(weights) - own


def test_the_gate_at_its_ends():
    """Wide open, an original costs nothing and a replacement very much; shut, both cost what the softmax says."""
    log_probs, same = jnp.log(jnp.array([[0.25, 0.25]])), jnp.array([[True, False]])
    wide, _ = copy_loss(log_probs, jnp.full((1, 2), 40.0), same)
    shut, gate = copy_loss(log_probs, jnp.full((1, 2), -40.0), same)
    np.testing.assert_allclose(wide, [[0.0, 40 + np.log(4)]], atol=1e-5)
    np.testing.assert_allclose(shut, np.log([[4, 4]]), atol=1e-5)
    assert (gate < 1e-6).all()
    gradients = jax.grad(lambda gates: copy_loss(log_probs, gates, same)[0].sum())(jnp.array([[-500.0, 500.0]]))
    assert np.isfinite(gradients).all()
