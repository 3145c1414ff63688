from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.train.heldout_case import (
    LENGTH,
    SIZE,
    VOCABULARY,
    cohort_of,
    one_device,
    params_of,
    random_split,
    split_of,
    stacked,
    store_of,
)
from train.baselines import Counts, baseline_figures, baselines_known, unigram_entropy
from train.evaluate import HeldOut

ORDINARY = np.asarray(VOCABULARY.ordinary, np.int64)
IDS = st.sampled_from([VOCABULARY.unk, VOCABULARY.sep, *range(5, 12), 40])


def masked_row(tokens, hidden):
    """One row of [CLS], tokens, [SEP] with the given positions masked; all of them are targets."""
    row = np.array([VOCABULARY.cls, *tokens, VOCABULARY.sep], np.int32)
    inputs = row.copy()
    inputs[hidden] = VOCABULARY.mask
    return SimpleNamespace(
        inputs_BxL=inputs[None],
        positions_BxM=np.array([hidden]),
        labels_BxM=row[hidden][None],
        weights_BxM=np.ones((1, len(hidden)), np.float32),
    )


@settings(deadline=None, max_examples=50)
@given(st.lists(IDS, min_size=0, max_size=80), IDS, IDS)
def test_each_baseline_is_a_distribution_over_ordinary_ids(stream, left, right):
    counts = Counts(np.array(stream, np.uint16), VOCABULARY)
    for before in (-1, left):
        for after in (-1, right):
            lefts, rights = np.full_like(ORDINARY, before), np.full_like(ORDINARY, after)
            both = counts.both(lefts, rights, ORDINARY)
            for probabilities in (counts.unigram(ORDINARY), counts.left(lefts, ORDINARY), both):
                assert (probabilities > 0).all()
                assert probabilities.sum() == pytest.approx(1, abs=1e-9)


def test_probabilities_equal_a_plain_count():
    stream = random_split(5, 30).tokens
    counts = Counts(stream, VOCABULARY)
    alone, lefts, rights, boths = Counter(), defaultdict(Counter), defaultdict(Counter), defaultdict(Counter)
    for before, token, after in zip(stream, stream[1:], stream[2:], strict=False):
        if token >= 5:
            alone[token] += 1
            lefts[before][token] += 1
            rights[after][token] += 1
            boths[before, after][token] += 1

    def witten_bell(counter, token, simpler):
        total = sum(counter.values())
        return (counter[token] + len(counter) * simpler) / (total + len(counter)) if total else simpler

    seen = 0
    for before, token, after in zip(stream[:300], stream[1:301], stream[2:302], strict=True):
        if token < 5:
            continue
        unigram = witten_bell(alone, token, 1 / (SIZE - 5))
        from_left = witten_bell(lefts[before], token, unigram)
        from_right = witten_bell(rights[after], token, unigram)
        together = witten_bell(boths[before, after], token, (from_left + from_right) / 2)
        arrays = [np.array([each], np.int64) for each in (before, after, token)]
        assert counts.unigram(arrays[2]) == pytest.approx(unigram)
        assert counts.left(arrays[0], arrays[2]) == pytest.approx(from_left)
        assert counts.both(*arrays) == pytest.approx(together)
        seen += 1
    assert seen > 200


def test_scored_on_the_targets_of_the_model():
    """With every weight at zero the model is uniform; a text that teaches nothing leaves the unigram uniform too."""
    store = store_of(random_split(1, 8), train=split_of([[]]))
    params = stacked(params_of(0, 0.0))
    cohort = cohort_of(('a', 0, {}))
    losses = {
        each['eval_rate']: each['value']
        for each in HeldOut(store, cohort, LENGTH, one_device()).figures(params, 0, 0)
        if each['metric'] == 'loss'
    }
    assert losses == {rate: pytest.approx(np.log(SIZE), rel=1e-5) for rate in (0.15, 0.4)}
    for each in baseline_figures(store, cohort.config, LENGTH)[1:]:
        assert each['value'] == pytest.approx(np.log(SIZE - 5))
        assert (each['arm'], each['seed']) == ('', None)


def test_a_known_neighbour_decides_and_a_masked_one_tells_nothing():
    """In the training text 10, 11, 12 follow one another always, and 20 to 49 stand alone in any order."""
    rng = np.random.default_rng(0)
    stream = np.concatenate([[10, 11, 12, rng.integers(20, 50)] for _ in range(3000)])
    counts = Counts(stream, VOCABULARY)

    def losses(hidden):
        found = counts.losses(masked_row([10, 11, 12, 30, 10, 11, 12], hidden))
        return [found[name][0] / found[name][1] for name in ('unigram_loss', 'left_loss', 'both_loss')]

    unigram, left, both = losses([2])  # 11 between 10 and 12
    assert unigram == pytest.approx(np.log(4), abs=0.1) and left < 0.05 and both < 0.05
    unigram, left, both = losses([1])  # 10 at the start of the row, before 11
    assert left == unigram and both < 0.05
    unigram, left, both = losses([7])  # 12 at the end of the row, after 11: the [SEP] there is no neighbour
    assert left < 0.05 and both == left
    unigram, left, both = losses([1, 2, 3])  # all three hidden; 30 stands after
    assert left == unigram and both < unigram
    masked = masked_row([10, 11, 12, 30], [2, 3])  # 11 after 10, with a hidden right neighbour
    masked.weights_BxM[0, 1] = 0
    found = counts.losses(masked)
    assert found['both_loss'] == found['left_loss'] and found['both_loss'][0] < 0.05


@settings(deadline=None, max_examples=20)
@given(st.integers(5, SIZE - 1), st.integers(5, SIZE - 1))
def test_what_is_masked_is_not_read(first, second):
    counts = Counts(random_split(5, 30).tokens, VOCABULARY)
    losses = []
    for hidden_token in (first, second):
        masked = masked_row([20, hidden_token, 7, 30], [2, 3])
        masked.weights_BxM[0, 0] = 0  # score the 7 alone, its left neighbour masked as well
        losses.append(counts.losses(masked))
    assert losses[0] == losses[1] and losses[0]['left_loss'][1] == 1


def test_entropy_is_that_of_the_text_itself():
    uniform = split_of([[list(range(5, 13)) * 10], [list(range(5, 13))]])
    assert unigram_entropy(uniform, VOCABULARY) == pytest.approx(np.log(8))
    heldout = random_split(7, 40)
    own = Counts(heldout.tokens, VOCABULARY)
    ordinary = heldout.tokens[heldout.tokens >= 5].astype(np.int64)
    cross_entropy = -np.log(own.unigram(ordinary)).mean()
    assert unigram_entropy(heldout, VOCABULARY) < cross_entropy < unigram_entropy(heldout, VOCABULARY) + 0.05


def test_figures():
    store = store_of(random_split(1, 8))
    config = cohort_of(('a', 0, {})).config
    found = [(each['metric'], each['eval_rate']) for each in baseline_figures(store, config, LENGTH)]
    names = ('unigram_loss', 'left_loss', 'both_loss')
    assert found == [('unigram_entropy', None), *((name, rate) for rate in (0.15, 0.4) for name in names)]


def test_some_of_the_figures_are_not_all():
    """A kill while they are written leaves the first of them, the last line cut short and so not read."""
    store, config = store_of(random_split(1, 8)), cohort_of(('a', 0, {})).config
    records = [{'kind': 'figure', **each} for each in baseline_figures(store, config, LENGTH)]
    assert baselines_known([{'kind': 'run'}, *records], config)
    assert not any(baselines_known(records[:count], config) for count in range(len(records)))
    of_an_arm = [{**record, 'arm': 'a'} for record in records]
    assert not baselines_known(of_an_arm, config)
