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
from train.evaluate import HeldOut, fixed_settings, heldout_rows, slots_for, spread, whole_batches
from train.masking import document_ids, mask_rows

STORE = store_of(random_split(1, documents=8))
ROWS = len(heldout_rows(STORE.heldout, VOCABULARY, LENGTH, 0)[0])


def held_out(*arms, **evaluation):
    return HeldOut(STORE, cohort_of(*arms, **evaluation), LENGTH, one_device())


def figures_of(held, params_R):
    return held.figures(params_R, stage=0, step=10)


@pytest.fixture(scope='module')
def of_one():
    """Measures one replica, on 4 rows for its curve."""
    return held_out(('a', 0, dict(corruption_rate=0.15)), curve_rows=4)


def values(figures, metric, rate):
    return [each['value'] for each in figures if each['metric'] == metric and each['eval_rate'] == rate]


def masked_at(rate):
    tokens_NxL, row_ids_N = heldout_rows(STORE.heldout, VOCABULARY, LENGTH, 0)
    ids = document_ids(tokens_NxL, VOCABULARY)
    masked = mask_rows(
        tokens_NxL, ids, row_ids_N, row_ids_N * 0, fixed_settings(rate), VOCABULARY, slots_for([0.4], LENGTH), 1
    )
    return tokens_NxL, [np.asarray(leaf) for leaf in masked]


def test_every_held_out_token_lies_in_one_row():
    tokens_NxL, _ = heldout_rows(STORE.heldout, VOCABULARY, LENGTH, 0)
    stream = tokens_NxL[:, 1:][tokens_NxL[:, 1:] != VOCABULARY.pad]
    closing = np.cumsum((tokens_NxL[:, 1:] != VOCABULARY.pad).sum(axis=1)) - 1
    assert np.array_equal(np.delete(stream, closing), STORE.heldout.tokens)
    assert (tokens_NxL == VOCABULARY.pad).any(), 'the case has a partial row'


def test_the_batch_size_changes_nothing():
    params_R = stacked(params_of(0, 3.0), params_of(1, 3.0))
    arms = [('a', 0, dict(corruption_rate=0.15)), ('b', 1, dict(corruption_rate=0.3))]
    expected = figures_of(held_out(*arms, batch_size=8), params_R)
    for batch_size in (1, 3, ROWS, ROWS + 1):
        found = figures_of(held_out(*arms, batch_size=batch_size), params_R)
        assert len(found) == len(expected) == 2 * (2 + 1) * 2
        for one, other in zip(found, expected, strict=True):
            assert {**one, 'value': 0} == {**other, 'value': 0}
            assert one['value'] == pytest.approx(other['value'], rel=1e-6)


def test_loss_and_accuracy_equal_a_plain_loop(of_one):
    params = params_of(3, 3.0)
    found = figures_of(of_one, stacked(params))
    for rate in (0.15, 0.4):
        tokens_NxL, (inputs_NxL, positions_NxM, _, weights_NxM) = masked_at(rate)
        losses, right = [], []
        for row in range(ROWS):
            log_probs_LxV = log_probs(params, inputs_NxL[row])
            for position in positions_NxM[row][weights_NxM[row] > 0]:
                losses.append(-log_probs_LxV[position, tokens_NxL[row, position]])
                right.append(log_probs_LxV[position].argmax() == tokens_NxL[row, position])
        maskable = (tokens_NxL >= 5).sum(axis=1)
        assert len(losses) == np.floor(maskable * round(rate * 100) / 100 + 0.5).sum()
        assert values(found, 'loss', rate) == [pytest.approx(np.mean(losses), rel=1e-5)]
        assert values(found, 'accuracy', rate) == [pytest.approx(np.mean(right), abs=1e-9)]


def test_an_untrained_model_stands_at_log_v(of_one):
    found = figures_of(of_one, stacked(params_of(0)))
    for rate in (0.15, 0.4):
        assert values(found, 'loss', rate)[0] == pytest.approx(np.log(SIZE), abs=0.05)


def test_common_rates_have_one_set_of_masks_for_every_arm_and_seed():
    arms = [
        ('mask', 0, dict(corruption_rate=0.15)),
        ('rule', 1, dict(corruption_rate=0.8, rule=(0.0, 0.5, 0.5), noise=7)),
        ('static', 5, dict(corruption_rate=0.3, duplicates=2)),
    ]
    found = figures_of(held_out(*arms), stacked(*[params_of(0, 3.0)] * 3))
    for rate in (0.15, 0.4):
        for metric in ('loss', 'accuracy'):
            assert len(set(values(found, metric, rate))) == 1
    assert len({each['value'] for each in found if each['metric'] == 'own_loss'}) == 3


def test_common_masks_are_all_mask_and_nest():
    tokens_NxL, (low, *_) = masked_at(0.15)
    _, (high, *_) = masked_at(0.4)
    assert (low[low != tokens_NxL] == VOCABULARY.mask).all() and (high[high != tokens_NxL] == VOCABULARY.mask).all()
    assert ((low == VOCABULARY.mask) <= (high == VOCABULARY.mask)).all()
    assert 0 < (low == VOCABULARY.mask).sum() < (high == VOCABULARY.mask).sum()


def test_a_replica_is_measured_as_if_alone():
    params = [params_of(seed, 3.0) for seed in range(3)]
    arms = [(f'arm{seed}', seed, dict(corruption_rate=0.2 * (seed + 1))) for seed in range(3)]
    together = figures_of(held_out(*arms), stacked(*params))
    alone = figures_of(held_out(arms[1]), stacked(params[1]))
    found = [each for each in together if each['arm'] == 'arm1']
    assert len(found) == len(alone) == 2 * (2 + 1)
    for one, other in zip(found, alone, strict=True):
        assert {**one, 'value': 0} == {**other, 'value': 0}
        assert one['value'] == pytest.approx(other['value'], rel=1e-6)
    assert len({each['value'] for each in together if each['metric'] == 'loss'}) == 3 * 2


def test_own_figures_use_the_rate_and_rule_that_the_arm_ends_with():
    arms = [
        ('falling', 0, dict(corruption_rate=0.4, rate_points=((1.0, 0.15),), rule=(1.0, 0.0, 0.0))),
        ('kept', 0, dict(corruption_rate=0.4, rule=(0.0, 0.0, 1.0))),
        ('none', 0, dict(corruption_rate=0.0)),
    ]
    found = figures_of(held_out(*arms), stacked(*[params_of(0, 3.0)] * 3))
    own = {each['arm']: each for each in found if each['metric'] == 'own_loss'}
    assert own['falling']['eval_rate'] == 0.15
    assert own['falling']['value'] == pytest.approx(values(found, 'loss', 0.15)[0], rel=1e-6)
    assert own['kept']['eval_rate'] == 0.4
    assert own['kept']['value'] != pytest.approx(values(found, 'loss', 0.4)[0], rel=1e-2), (
        'it reads the tokens themselves'
    )
    assert 'none' not in own, 'no target, no figure'


def test_the_curve_is_the_same_measure_on_fewer_rows(of_one):
    params_R = stacked(params_of(0, 3.0))
    fewer = HeldOut(STORE, cohort_of(('a', 0, {}), rows=4), LENGTH, one_device()).figures(params_R, 0, 5)
    curve = of_one.curve(params_R, 1, 5)
    assert [each['value'] for each in curve] == pytest.approx(values(fewer, 'loss', 0.15), rel=1e-6)
    assert curve[0]['value'] != pytest.approx(values(figures_of(of_one, params_R), 'loss', 0.15)[0], rel=1e-6)
    assert [(each['metric'], each['eval_rate'], each['stage'], each['step']) for each in curve] == [
        ('curve_loss', 0.15, 1, 5)
    ]


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
