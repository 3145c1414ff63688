"""The loss's sums: against autodiff of the plain formula, with ties, and both ways of finding the label."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from train.objectives.cross_entropy import cross_entropy, judged, label_by_lookup, label_by_sums

# Few values, so that many are equal, at the ends of what logits are.
LOGITS = arrays(np.float32, (2, 3, 7), elements=st.sampled_from([-1e30, -80.0, -1.0, 0.0, 0.5, 80.0]))
LABELS = arrays(np.int32, (2, 3), elements=st.integers(0, 6))


@settings(deadline=None)
@given(LOGITS, LABELS)
def test_a_guess_is_right_where_argmax_says_so_on_every_platform(logits_BxMxV, labels_BxM):
    expected = np.argmax(logits_BxMxV, axis=-1) == labels_BxM
    inputs = (logits_BxMxV, labels_BxM, logits_BxMxV.max(-1))
    for way in (label_by_lookup, label_by_sums):
        label_BxM, right_BxM = jax.jit(way)(*inputs)
        np.testing.assert_array_equal(right_BxM, expected)
        np.testing.assert_array_equal(label_BxM, np.take_along_axis(logits_BxMxV, labels_BxM[..., None], -1)[..., 0])
    log_probs_BxM, right_BxM = judged(logits_BxMxV, labels_BxM)
    np.testing.assert_array_equal(right_BxM, expected)
    plain_BxMxV = jax.nn.log_softmax(logits_BxMxV)
    np.testing.assert_allclose(
        log_probs_BxM, np.take_along_axis(plain_BxMxV, labels_BxM[..., None], -1)[..., 0], rtol=1e-6
    )


def test_the_gradient_is_that_of_the_softmax_and_unused_slots_have_none():
    noise = np.random.default_rng(0)
    logits_BxMxV, labels_BxM = noise.normal(0, 3, (2, 5, 11)).astype(np.float32), noise.integers(0, 11, (2, 5))
    weights_BxM = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.float32)

    def plain(logits_BxMxV):
        log_probs_BxM = jnp.take_along_axis(jax.nn.log_softmax(logits_BxMxV), labels_BxM[..., None], -1)[..., 0]
        return -(log_probs_BxM * weights_BxM).sum()

    def ours(logits_BxMxV):
        return cross_entropy(logits_BxMxV, labels_BxM.astype(np.int32), weights_BxM)[0]

    found, expected = (jax.value_and_grad(function)(logits_BxMxV) for function in (ours, plain))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-6)
    assert not found[1][0, 3:].any() and found[1][0, :3].any(axis=-1).all()


def test_a_logit_that_is_not_finite_makes_the_loss_not_finite():
    for value in (np.nan, np.inf):
        logits_BxMxV = np.zeros((1, 1, 4), np.float32)
        logits_BxMxV[..., 2] = value
        loss, _ = cross_entropy(logits_BxMxV, np.array([[1]], np.int32), np.ones((1, 1), np.float32))
        assert not np.isfinite(loss)
