import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.train.heldout_case import (
    LENGTH,
    SIZE,
    VOCABULARY,
    cohort_of,
    log_probs,
    one_device,
    params_of,
    random_split,
    stacked,
    store_of,
)
from train.evaluate import HeldOut
from train.fixed_masks import fixed_settings, slots_for
from train.heldout_rows import heldout_rows, spread
from train.masking import document_ids, mask_rows
from train.objectives.config import ObjectiveConfig
from train.replicas import IN_FLIGHT, fetched, whole_batches

STORE = store_of(random_split(1, documents=8))
ROWS = len(heldout_rows(STORE.heldout, VOCABULARY, LENGTH, 0)[0])


def held_out(*arms, **evaluation):
    return HeldOut(STORE, cohort_of(*arms, **evaluation), LENGTH, one_device())


def figures_of(held, params_R):
    return held.figures(params_R, stage=0, step=10)


@pytest.fixture(scope='module')
def of_one():
    """Measures one replica, on 4 rows for its curve."""
    return held_out(('a', 0, dict(corruption_rate=0.15)), curve_rows=4, batch_size=8)


def values(figures, metric, rate):
    return [each['value'] for each in figures if each['metric'] == metric and each['eval_rate'] == rate]


def masked_at(rate):
    tokens_NxL, row_ids_N = heldout_rows(STORE.heldout, VOCABULARY, LENGTH, 0)
    ids = document_ids(tokens_NxL, VOCABULARY)
    masked = mask_rows(
        tokens_NxL, ids, row_ids_N, row_ids_N * 0, fixed_settings(rate), VOCABULARY, slots_for([0.4], LENGTH), 1
    )
    return tokens_NxL, [np.asarray(leaf) for leaf in masked]


def plain_scores(params, rate, rows):
    """Each target's loss, and whether the guess is right, by a loop over rows and positions."""
    tokens_NxL, (inputs_NxL, positions_NxM, _, weights_NxM, _) = masked_at(rate)
    losses, right = [], []
    for row in rows:
        log_probs_LxV = log_probs(params, inputs_NxL[row])
        for position in positions_NxM[row][weights_NxM[row] > 0]:
            losses.append(-log_probs_LxV[position, tokens_NxL[row, position]])
            right.append(log_probs_LxV[position].argmax() == tokens_NxL[row, position])
    return losses, right


def test_every_held_out_token_lies_in_one_row():
    tokens_NxL, _ = heldout_rows(STORE.heldout, VOCABULARY, LENGTH, 0)
    stream = tokens_NxL[:, 1:][tokens_NxL[:, 1:] != VOCABULARY.pad]
    closing = np.cumsum((tokens_NxL[:, 1:] != VOCABULARY.pad).sum(axis=1)) - 1
    assert np.array_equal(np.delete(stream, closing), STORE.heldout.tokens)
    assert (tokens_NxL == VOCABULARY.pad).any(), 'the case has a partial row'


def test_the_batch_size_changes_nothing(of_one):
    params_R = stacked(params_of(0, 3.0))
    expected = figures_of(of_one, params_R)
    for batch_size in (1, 3, ROWS, ROWS + 1):
        found = figures_of(held_out(('a', 0, dict(corruption_rate=0.15)), batch_size=batch_size), params_R)
        assert len(found) == len(expected) == 2 * (2 + 1)
        for one, other in zip(found, expected, strict=True):
            assert {**one, 'value': 0} == {**other, 'value': 0}
            assert one['value'] == pytest.approx(other['value'], rel=1e-6)


def test_loss_and_accuracy_equal_a_plain_loop(of_one):
    params = params_of(3, 3.0)
    found = figures_of(of_one, stacked(params))
    for rate in (0.15, 0.4):
        losses, right = plain_scores(params, rate, range(ROWS))
        maskable = (masked_at(rate)[0] >= 5).sum(axis=1)
        assert len(losses) == np.floor(maskable * round(rate * 100) / 100 + 0.5).sum()
        assert values(found, 'loss', rate) == [pytest.approx(np.mean(losses), rel=1e-5)]
        assert values(found, 'accuracy', rate) == [pytest.approx(100 * np.mean(right), abs=1e-7)]


def test_the_curve_is_the_loss_on_fewer_rows(of_one):
    params = params_of(3, 3.0)
    losses, _ = plain_scores(params, 0.15, spread(ROWS, 4))
    assert of_one.curve(stacked(params), 1, 5) == [
        dict(arm='a', seed=0, stage=1, step=5, metric='curve_loss', eval_rate=0.15, task=None, ft_seed=None)
        | {'value': pytest.approx(np.mean(losses), rel=1e-5)}
    ]


def test_an_untrained_model_stands_at_log_v(of_one):
    found = figures_of(of_one, stacked(params_of(0)))
    for rate in (0.15, 0.4):
        assert values(found, 'loss', rate)[0] == pytest.approx(np.log(SIZE), abs=0.05)


def test_a_model_that_prefers_nothing_has_no_guess_right_by_a_tie(of_one):
    found = figures_of(of_one, stacked(params_of(0, 0.0)))
    for rate in (0.15, 0.4):
        assert values(found, 'loss', rate)[0] == pytest.approx(np.log(SIZE), rel=1e-5)
        assert values(found, 'accuracy', rate) == [0.0]


def test_common_masks_are_all_mask_and_nest():
    tokens_NxL, (low, *_) = masked_at(0.15)
    _, (high, *_) = masked_at(0.4)
    assert (low[low != tokens_NxL] == VOCABULARY.mask).all() and (high[high != tokens_NxL] == VOCABULARY.mask).all()
    assert ((low == VOCABULARY.mask) <= (high == VOCABULARY.mask)).all()
    assert 0 < (low == VOCABULARY.mask).sum() < (high == VOCABULARY.mask).sum()


def test_a_replica_is_measured_as_if_alone(of_one):
    params = [params_of(seed, 3.0) for seed in range(3)]
    arms = [('c', 2, dict(corruption_rate=0.6)), ('a', 0, dict(corruption_rate=0.15)), ('b', 1, {})]
    together = figures_of(held_out(*arms), stacked(*params))
    alone = figures_of(of_one, stacked(params[1]))
    found = [each for each in together if each['arm'] == 'a']
    assert len(found) == len(alone) == 2 * (2 + 1)
    for one, other in zip(found, alone, strict=True):
        assert {**one, 'value': 0} == {**other, 'value': 0}
        assert one['value'] == pytest.approx(other['value'], rel=1e-6)
    assert len({each['value'] for each in together if each['metric'] == 'loss'}) == 3 * 2


def test_common_rates_have_the_same_masks_for_all_and_the_own_rate_is_the_arms():
    arms = {
        'plain': (0, dict(corruption_rate=0.15)),
        'falling': (0, dict(corruption_rate=0.4, rate_points=((1.0, 0.15),), rule=(1.0, 0.0, 0.0))),
        'static': (5, dict(corruption_rate=0.3, duplicates=2, noise=7)),
        'kept': (1, dict(corruption_rate=0.4, rule=(0.0, 0.0, 1.0))),
        'prediction': (0, dict(corruption_rate=0.4, prediction_rate=0.15, rule=(1.0, 0.0, 0.0))),
        'none': (0, dict(corruption_rate=0.0)),
    }
    held = held_out(*((arm, seed, masking) for arm, (seed, masking) in arms.items()))
    found = figures_of(held, stacked(*[params_of(0, 3.0)] * len(arms)))
    for rate in (0.15, 0.4):
        for metric in ('loss', 'accuracy'):
            assert len(values(found, metric, rate)) == len(arms) and len(set(values(found, metric, rate))) == 1
    own = {each['arm']: each for each in found if each['metric'] == 'own_loss'}
    assert {arm: each['eval_rate'] for arm, each in own.items()} == {
        'plain': 0.15, 'falling': 0.15, 'static': 0.3, 'kept': 0.4, 'prediction': 0.4
    }, 'an arm that ends at rate 0 has no target and no figure'  # fmt: skip
    for arm in ('falling', 'prediction'):
        common = values(found, 'loss', own[arm]['eval_rate'])[0]
        assert own[arm]['value'] == pytest.approx(common, rel=1e-6), 'the rule is all [MASK], so the masks are the same'
    for arm in ('plain', 'kept'):
        common = values(found, 'loss', own[arm]['eval_rate'])[0]
        assert own[arm]['value'] != pytest.approx(common, rel=1e-4), 'another rule'


def test_a_model_of_samples_has_no_rate_of_its_own():
    """It never read what its rule would make of held-out rows."""
    cohort = cohort_of(('a', 0, dict(corruption_rate=0.15)))
    (replica,) = cohort.replicas
    config = dataclasses.replace(replica.config, objective=ObjectiveConfig('replace_mlm'))
    cohort = dataclasses.replace(cohort, replicas=(dataclasses.replace(replica, config=config),))
    found = figures_of(HeldOut(STORE, cohort, LENGTH, one_device()), stacked(params_of(0)))
    assert {each['metric'] for each in found} == {'loss', 'accuracy'}


ON_FOUR_DEVICES = """
import jax, numpy as np
from train.replicas import ReplicaProgram
from train.mesh import make_mesh
from train.sharding import placed

weights_R, rows_N = np.arange(4.0, dtype=np.float32), np.arange(11, dtype=np.int32)
for shape in ((1, 1, 1, 1), (4, 1, 1, 1), (1, 4, 1, 1), (2, 2, 1, 1), (1, 2, 2, 1), (2, 1, 2, 1), (1, 2, 1, 2)):
    mesh = make_mesh(shape, 4, (4,))
    program = ReplicaProgram(lambda weight, rows: {'sum': weight + 10.0 * rows}, mesh, batch_size=3)
    found = program(jax.device_put(weights_R, placed(mesh, 'replica')), rows_N)['sum']
    assert np.array_equal(found, weights_R[:, None] + 10.0 * rows_N), (shape, found)
print('equal')
"""


def test_the_devices_change_nothing():
    env = dict(os.environ, JAX_PLATFORMS='cpu', XLA_FLAGS='--xla_force_host_platform_device_count=4')
    done = subprocess.run(
        [sys.executable, '-c', ON_FOUR_DEVICES], env=env, cwd=Path(__file__).parents[2], capture_output=True, text=True
    )
    assert done.stdout == 'equal\n', done.stderr


class Result:
    """Something that is on its way until numpy asks for it."""

    on_the_way = 0

    def __init__(self, value):
        self.value = value
        Result.on_the_way += 1

    def __array__(self, dtype=None, copy=None):
        Result.on_the_way -= 1
        return np.array(self.value)


@given(st.integers(0, 100))
def test_few_batches_are_ahead_of_what_is_fetched(count):
    """XLA's CPU devices wait for each other for ever once more than 32 programs with a collective are on the way."""
    most = 0

    def run(batch):
        nonlocal most
        result = Result(10 * batch)
        most = max(most, Result.on_the_way)
        return {'result': result}

    assert [(batch, int(found['result'])) for batch, found in fetched(run, range(count))] == [
        (batch, 10 * batch) for batch in range(count)
    ]
    assert Result.on_the_way == 0 and most == min(count, IN_FLIGHT) < 32


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(1, 50))
def test_whole_batches_count_each_item_once(count, batch_size):
    counted = []
    for indices, used in whole_batches(count, batch_size):
        assert len(indices) == batch_size and 0 < used <= batch_size
        counted += list(indices[:used])
    assert counted == list(range(count))


@settings(deadline=None)
@given(st.integers(0, 300), st.integers(0, 300))
def test_spread_picks_distinct_items_over_the_whole(total, wanted):
    picked = spread(total, wanted)
    assert len(picked) == (min(total, wanted) if wanted else total)
    assert (np.diff(picked) > 0).all()
    if len(picked):
        assert picked[0] == 0 and total - picked[-1] <= -(-total // len(picked))
