"""BERT with both of its heads under the names of `transformers`, and what ours make of the same inputs."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from model import mlm
from model.config import ModelConfig
from model.huggingface_names import to_params
from tests.model.parity_case import Inputs
from train.objectives.cross_entropy import cross_entropy
from train.objectives.mlm_with_pairs import judge

CONFIGS = {'bert_pretraining': ModelConfig(layers=2, width=16, heads=2, feed_forward=32, max_length=24, vocab_size=99)}


def pair_labels(tokens_BxL):
    """Whether a pair counts as one that does not follow: its second token's id is even."""
    return tokens_BxL[:, 1] % 2 == 0


def from_reference(tensors: dict[str, np.ndarray], config: ModelConfig):
    """Parameters from a reference's tensors, weights or gradients."""
    params = to_params(tensors, config)
    output = {'kernel': tensors['cls.seq_relationship.weight'].T, 'bias': tensors['cls.seq_relationship.bias']}
    params['pair'] = {'pooler': params.pop('pooler'), 'output': output}
    return params


@partial(jax.jit, static_argnums=1)
def found(params, config: ModelConfig, inputs: Inputs) -> dict:
    """{hidden, logits (both 0 at padding), pair_logits, loss, gradients}; the loss is the sum of both means."""
    valid_BxLx1 = inputs.valid_BxL[..., None] > 0
    first_BxM = (inputs.positions_BxM != jnp.roll(inputs.positions_BxM, 1, axis=1).at[:, 0].set(-1)).astype(float)

    def loss_of(params):
        hidden_BxLxD = mlm.encode(params, config, inputs.tokens_BxL, inputs.valid_BxL, inputs.type_ids_BxL)
        hidden_BxMxD = jnp.take_along_axis(hidden_BxLxD, inputs.positions_BxM[..., None], axis=1)
        of_tokens, _ = cross_entropy(mlm.predict(params, config, hidden_BxMxD), inputs.labels_BxM, first_BxM)
        pair_logits_BxC = judge(params, config, hidden_BxLxD[:, :1])
        labels_Bx1 = pair_labels(inputs.tokens_BxL).astype(jnp.int32)[:, None]
        of_pairs, _ = cross_entropy(pair_logits_BxC[:, None], labels_Bx1, jnp.ones(labels_Bx1.shape))
        return of_tokens / jnp.sum(first_BxM) + of_pairs / len(labels_Bx1), (hidden_BxLxD, pair_logits_BxC)

    (loss, (hidden_BxLxD, pair_logits_BxC)), gradients = jax.value_and_grad(loss_of, has_aux=True)(params)
    logits_BxLxV = mlm.predict(params, config, hidden_BxLxD)[..., : config.vocab_size]
    return {
        'hidden': jnp.where(valid_BxLx1, hidden_BxLxD, 0),
        'logits': jnp.where(valid_BxLx1, logits_BxLxV, 0),
        'pair_logits': pair_logits_BxC,
        'loss': loss,
        'gradients': gradients,
    }
