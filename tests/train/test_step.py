"""One update: its loss against a plain loop, its independence of how work is cut up, and what a failure does."""

import dataclasses

import jax
import numpy as np
import pytest

from model import mlm
from tests.train.step_case import SIZE, VOCABULARY, cohort, config, rows, trained
from train.masking import document_ids, mask_rows
from train.program import Program
from train.rates import target_slots


def leaves(tree, replica: int) -> list[np.ndarray]:
    return [np.asarray(leaf)[replica] for leaf in jax.tree.leaves(tree)]


def loss(metrics) -> float:
    """The summed loss of the first replica."""
    return metrics.pairs['loss'][0][0]


def test_loss_is_the_mean_over_all_targets_by_a_plain_loop():
    group = cohort({'a': config(0.4)})
    program = Program.of(group, VOCABULARY)
    state, host = program.init(), rows((0,), 0)
    params = jax.tree.map(lambda leaf: leaf[0], state.params)
    settings = jax.tree.map(lambda leaf: leaf[0], program.settings(0))
    tokens = host.tokens_SxBxL[0]
    ids = document_ids(tokens, VOCABULARY)
    slots = target_slots([group.config.masking], 24)
    masked = mask_rows(
        tokens, ids, host.row_ids_SxB[0], host.epochs_SxB[0], settings, VOCABULARY, slots=slots, copies=1
    )
    hidden = np.asarray(mlm.encode(params, group.config.model, masked.inputs_BxL, ids))
    losses, right = [], 0
    for b in range(len(tokens)):
        for m in range(slots):
            if masked.weights_BxM[b, m]:
                at = masked.positions_BxM[b, m]
                logits = np.asarray(mlm.predict(params, group.config.model, hidden[None, b : b + 1, at]))[0, 0, :SIZE]
                label = tokens[b, at]
                losses.append(np.log(np.sum(np.exp(logits.astype(np.float64)))) - logits[label])
                right += int(np.argmax(logits) == label)
    _, (metrics,) = trained(group, 1)
    loss, weight = metrics.pairs['loss']
    assert weight[0] == metrics.targets[0] == len(losses)
    np.testing.assert_allclose(loss[0] / weight[0], np.mean(losses), rtol=1e-5)
    assert metrics.pairs['accuracy'][0][0] == right


@pytest.mark.parametrize('micro_batches', [2, 4])
def test_micro_batches_change_no_gradient_with_uneven_target_counts(micro_batches):
    whole, _ = trained(cohort({'a': config(0.3)}), 1)
    parts, _ = trained(cohort({'a': config(0.3, micro_batches=micro_batches)}), 1)
    for a, b in zip(leaves(whole.opt_state[0].mu, 0), leaves(parts.opt_state[0].mu, 0), strict=True):
        # A key bias has no gradient but rounding: the 1e-12 is for it.
        assert np.max(np.abs(a - b)) <= 1e-5 * np.max(np.abs(a)) + 1e-12


@pytest.mark.parametrize('dropout', [0.0, 0.1])
def test_a_replica_among_others_ends_as_it_does_alone(dropout):
    arms = {'low': config(0.15, dropout=dropout), 'high': config(0.4, dropout=dropout, learning_rate=3e-3)}
    together, _ = trained(cohort(arms, seeds=(0, 1, 2)), 30)
    for index, (arm, seed) in enumerate((arm, seed) for seed in (0, 1, 2) for arm in arms):
        if (arm, seed) in (('high', 1), ('low', 2)):
            alone, _ = trained(cohort({arm: arms[arm]}, seeds=(seed,)), 30)
            for a, b in zip(leaves(alone.params, 0), leaves(together.params, index), strict=True):
                np.testing.assert_allclose(a, b, atol=1e-5, rtol=0)


def test_arms_of_a_seed_start_alike_and_seeds_do_not():
    arms = {'low': config(0.15), 'high': config(0.4)}
    state = Program.of(cohort(arms, seeds=(0, 1)), VOCABULARY).init()
    kernel = np.asarray(state.params['layers']['feed_forward']['up']['kernel'])
    np.testing.assert_array_equal(kernel[0], kernel[1])
    assert not np.allclose(kernel[0], kernel[2])


def test_dropout_changes_the_loss_and_its_noise_changes_with_the_step():
    plain, dropped = cohort({'a': config(0.3)}), cohort({'a': config(0.3, dropout=0.5)})
    same_rows = {'change': lambda host, step: rows((0,), 0)}
    still = dataclasses.replace(config(0.3, dropout=0.5, learning_rate=0.0))
    _, metrics = trained(cohort({'a': still}), 2, **same_rows)
    assert loss(metrics[0]) != loss(metrics[1])
    assert loss(trained(plain, 1)[1][0]) != loss(trained(dropped, 1)[1][0])


def test_a_replica_that_is_not_finite_stays_as_it_was_and_the_others_go_on():
    arms = {'good': config(0.3), 'bad': config(0.3, learning_rate=1e30)}
    state, metrics = trained(cohort(arms), 6)
    alive = np.array([step.alive for step in metrics])
    assert alive[:, 0].all() and not alive[-1, 1]
    failed_at = int(np.argmin(alive[:, 1]))
    assert not alive[failed_at:, 1].any()
    assert list(state.step) == [6, failed_at]
    before, _ = trained(cohort(arms), failed_at)
    for a, b in zip(leaves(before, 1), leaves(state, 1), strict=True):
        np.testing.assert_array_equal(a, b)
    alone, _ = trained(cohort({'good': arms['good']}), 6)
    for a, b in zip(leaves(alone.params, 0), leaves(state.params, 0), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_rate_zero_trains_nothing_and_stays_finite():
    state, metrics = trained(cohort({'a': config(0.0, weight_decay=0.0)}), 2)
    assert metrics[0].targets[0] == 0 and metrics[0].alive[0]
    start = Program.of(cohort({'a': config(0.0)}), VOCABULARY).init()
    for a, b in zip(leaves(start.params, 0), leaves(state.params, 0), strict=True):
        np.testing.assert_array_equal(a, b)
