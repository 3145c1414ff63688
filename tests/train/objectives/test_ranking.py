"""The pair behind the area under the ROC curve, against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from train.objectives.ranking import ranking


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.floats(0, 3), st.floats(1e-3, 30), st.floats(-20, 20))
def test_the_quotient_is_the_area(seed, gap, spread, centre):
    """Whatever the scores' scale: bins follow their mean and spread."""
    noise = np.random.default_rng(seed)
    high = noise.random((8, 40)) < 0.15
    high[0, :2] = True, False
    scored = noise.random(high.shape) < 0.9
    scored[0, :2] = True
    scores = (noise.normal(0, 1, high.shape) + gap * high) * spread + centre
    sides = [(scored & side).astype(np.float32) for side in (high, ~high)]
    won, pairs = ranking(scores.astype(np.float32), *sides)
    assert pairs == sides[0].sum() * sides[1].sum()
    assert won / pairs == pytest.approx(roc_auc_score(high[scored], scores[scored]), abs=0.01)


def test_equal_scores_are_half_and_an_empty_side_has_no_pairs():
    high = np.eye(4, dtype=np.float32)
    assert ranking(np.zeros((4, 4), np.float32), high, 1 - high) == (24, 48)
    assert ranking(np.ones((4, 4), np.float32), 0 * high, 1 - high) == (0, 0)
    won, pairs = ranking(np.where(high > 0, 1e4, -1e4).astype(np.float32), high, 1 - high)
    assert won == pairs
