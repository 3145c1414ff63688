"""The loss of stretches of the slots is that of all, and so are its gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from train import parts
from train.objectives.cross_entropy import cross_entropy


@pytest.mark.parametrize(('slots', 'stretches'), [(3, 1), (7, 2), (8, 2), (11, 3)])
@pytest.mark.parametrize('dtype', ['float32', 'bfloat16'])
def test_stretches_add_up(slots, stretches, dtype, monkeypatch):
    monkeypatch.setattr(parts, 'SLOTS', 4)
    noise, made = np.random.default_rng(0), []
    table_VxD = jnp.asarray(noise.normal(size=(9, 5)), dtype)
    hidden_BxMxD = jnp.asarray(noise.normal(size=(2, slots, 5)), dtype)
    labels_BxM = noise.integers(0, 9, (2, slots)).astype(np.int32)
    weights_BxM = noise.integers(0, 2, (2, slots)).astype(np.float32)

    def loss(table_VxD, hidden_BxMxD, labels_BxM, weights_BxM):
        made.append(hidden_BxMxD.shape[1])
        logits_BxMxV = jnp.einsum('bmd,vd->bmv', hidden_BxMxD, table_VxD, preferred_element_type=jnp.float32)
        total, right = cross_entropy(logits_BxMxV, labels_BxM, weights_BxM)
        return total, (right, {'largest': logits_BxMxV.argmax(-1)})

    def mean(function, table_VxD, hidden_BxMxD):
        total, rest = function(table_VxD, hidden_BxMxD)
        return total / 7, rest

    def whole(*inputs):
        return loss(*inputs, labels_BxM, weights_BxM)

    def in_stretches(*inputs):
        return parts.in_parts(loss, *inputs, (labels_BxM, weights_BxM))

    expected = jax.value_and_grad(mean, argnums=(1, 2), has_aux=True)(whole, table_VxD, hidden_BxMxD)
    made.clear()
    found = jax.value_and_grad(mean, argnums=(1, 2), has_aux=True)(in_stretches, table_VxD, hidden_BxMxD)
    assert len(made) == stretches and sum(made) == slots and max(made) <= 4
    # Each stretch's gradient is rounded to the table's type, their sum once more, and that times the cotangent.
    tolerance = dict(atol=1e-6, rtol=1e-6) if dtype == 'float32' else dict(atol=2**-10, rtol=2**-7)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a, np.float32), np.asarray(b, np.float32), **tolerance)
