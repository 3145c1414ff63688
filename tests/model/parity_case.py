"""Inputs and comparisons shared by the parity tests: ours against `transformers`, from stored arrays or live."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from model import mlm
from model.config import ModelConfig
from model.huggingface_forms import ALBERT, BERT
from model.huggingface_names import to_params

_SMALL = dict(layers=2, width=16, heads=2, feed_forward=32, max_length=24, vocab_size=99)
CONFIGS = {
    'bert': ModelConfig(**_SMALL),
    'prelayernorm': ModelConfig(**_SMALL, norm='pre', norm_epsilon=1e-5),
    'roformer': ModelConfig(**_SMALL, positions='rotary'),
    'albert': ModelConfig(**{**_SMALL, 'layers': 3}, embedding_width=12, layers_share='all'),
}


class Inputs(NamedTuple):
    """Rows of several lengths (one of a single token), two token types, and a few targets in each."""

    tokens_BxL: np.ndarray
    type_ids_BxL: np.ndarray
    valid_BxL: np.ndarray
    positions_BxM: np.ndarray
    labels_BxM: np.ndarray


GOLDENS = Path(__file__).parent / 'goldens'
"""Arrays that make_goldens.py stored."""


def golden(name: str, convert: Callable[[dict[str, np.ndarray]], Any]) -> tuple[Any, Inputs, dict[str, Any]]:
    """Weights, inputs and expected outputs of a stored case; `convert` makes a tree of the reference's tensors."""
    stored = np.load(GOLDENS / f'{name}.npz')

    def tree(kind):
        return convert({key.removeprefix(kind): stored[key] for key in stored.files if key.startswith(kind)})

    outputs = [key for key in stored.files if '/' not in key and key not in Inputs._fields]
    expected = {key: stored[key] for key in outputs} | {'gradients': tree('gradient/')}
    return tree('weight/'), Inputs(*(stored[key] for key in Inputs._fields)), expected


def make_inputs(config: ModelConfig, batch: int, length: int, targets: int, seed: int = 0) -> Inputs:
    noise = np.random.default_rng(seed)
    lengths_B = np.concatenate([[length, 1], noise.integers(targets, length + 1, batch - 2)])
    place_BxL = np.broadcast_to(np.arange(length), (batch, length))
    valid_BxL = place_BxL < lengths_B[:, None]
    tokens_BxL = np.where(valid_BxL, noise.integers(1, config.vocab_size, (batch, length)), 0)
    type_ids_BxL = np.where(valid_BxL, place_BxL >= lengths_B[:, None] // 2, 0)
    order_BxL = np.argsort(noise.random((batch, length)) + ~valid_BxL, axis=1)
    positions_BxM = np.sort(np.where(lengths_B[:, None] > 1, order_BxL[:, :targets], 0), axis=1)
    labels_BxM = noise.integers(1, config.vocab_size, (batch, targets))
    labels_BxM[1] = labels_BxM[1, 0]
    return Inputs(*(np.asarray(a, np.int32) for a in (tokens_BxL, type_ids_BxL, valid_BxL, positions_BxM, labels_BxM)))


@partial(jax.jit, static_argnums=1)
def outputs(params, config: ModelConfig, inputs: Inputs):
    """{hidden, logits (both 0 at padding), loss, gradients}, the loss the mean over distinct targets."""
    valid_BxLx1 = inputs.valid_BxL[..., None] > 0
    first_BxM = inputs.positions_BxM != jnp.roll(inputs.positions_BxM, 1, axis=1).at[:, 0].set(-1)

    def loss_of(params):
        hidden_BxLxD = mlm.encode(params, config, inputs.tokens_BxL, inputs.valid_BxL, inputs.type_ids_BxL)
        hidden_BxMxD = jnp.take_along_axis(hidden_BxLxD, inputs.positions_BxM[..., None], axis=1)
        likelihood_BxMxV = jax.nn.log_softmax(mlm.predict(params, config, hidden_BxMxD), axis=-1)
        scores_BxM = jnp.take_along_axis(likelihood_BxMxV, inputs.labels_BxM[..., None], axis=-1)[..., 0]
        return -jnp.sum(scores_BxM * first_BxM) / jnp.sum(first_BxM), hidden_BxLxD

    (loss, hidden_BxLxD), gradients = jax.value_and_grad(loss_of, has_aux=True)(params)
    logits_BxLxV = mlm.predict(params, config, hidden_BxLxD)[..., : config.vocab_size]
    hidden_BxLxD, logits_BxLxV = (jnp.where(valid_BxLx1, a, 0) for a in (hidden_BxLxD, logits_BxLxV))
    return {'hidden': hidden_BxLxD, 'logits': logits_BxLxV, 'loss': loss, 'gradients': gradients}


def from_reference(tensors: dict[str, np.ndarray], config: ModelConfig):
    """Parameters from a reference's tensors (weights or gradients) under its names, plus `final_norm` for pre-LN.

    RoFormer turns features 2k and 2k + 1 of a head together, ours k and k + K / 2: queries and keys are reordered.
    """
    tensors = dict(tensors)
    width = (config.max_length, config.width)
    final = {'scale': tensors.pop('final_norm.weight', None), 'bias': tensors.pop('final_norm.bias', None)}
    if config.positions == 'rotary':
        tensors['bert.embeddings.position_embeddings.weight'] = np.zeros(width, np.float32)
    learned = ModelConfig(**{**vars(config), 'norm': 'post', 'positions': 'learned'})
    params = to_params(tensors, learned, ALBERT if config.layers_share == 'all' else BERT)
    if config.norm == 'pre':
        params['final_norm'] = final
    if config.positions == 'rotary':
        del params['embeddings']['position']
        order_K = np.concatenate([np.arange(0, config.head_width, 2), np.arange(1, config.head_width, 2)])
        for name in ('query', 'key'):
            params['layers']['attention'][name] = jax.tree.map(
                lambda leaf: leaf[..., order_K], params['layers']['attention'][name]
            )
    return params


def assert_close(ours, reference, most: float = 1e-4) -> None:
    """Every leaf within `most` of the reference's, absolutely."""
    for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(ours), jax.tree.leaves(reference), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=most, err_msg=jax.tree_util.keystr(path))
