"""ELECTRA's generator and discriminator under the names of `transformers`, and what ours make of the same inputs."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from model import electra, mlm
from model.config import ModelConfig
from model.huggingface_names import to_params
from tests.model.parity_case import Inputs, outputs

_SMALL = dict(layers=2, heads=2, embedding_width=12, max_length=24, vocab_size=99)
CONFIGS = {
    # Tables wider than the generator and narrower than the discriminator, as in ELECTRA-small.
    'electra_generator': ModelConfig(width=8, feed_forward=24, **_SMALL),
    'electra_discriminator': ModelConfig(width=16, feed_forward=32, **_SMALL),
}
_BERT = [
    ('electra.', 'bert.'),
    ('generator_predictions.dense.', 'cls.predictions.transform.dense.'),
    ('generator_predictions.LayerNorm.', 'cls.predictions.transform.LayerNorm.'),
    ('generator_lm_head.bias', 'cls.predictions.bias'),
]
_DETECTION = {'dense': 'discriminator_predictions.dense', 'output': 'discriminator_predictions.dense_prediction'}


def from_reference(tensors: dict[str, np.ndarray], config: ModelConfig):
    """Parameters from a reference's tensors, weights or gradients."""
    for theirs, bert in _BERT:
        tensors = {name.replace(theirs, bert): tensor for name, tensor in tensors.items()}
    params = to_params(tensors, config)
    if f'{_DETECTION["dense"]}.bias' in tensors:
        params['detection'] = {
            ours: {'kernel': tensors[f'{theirs}.weight'].T, 'bias': tensors[f'{theirs}.bias']}
            for ours, theirs in _DETECTION.items()
        }
    return params


@partial(jax.jit, static_argnums=1)
def detected(params, config: ModelConfig, inputs: Inputs):
    """{hidden, logits (both 0 at padding), loss, gradients}, the loss the mean over valid tokens.

    A token counts as replaced where its id is even.
    """
    valid_BxL = inputs.valid_BxL > 0

    def loss_of(params):
        hidden_BxLxD = mlm.encode(params, config, inputs.tokens_BxL, inputs.valid_BxL, inputs.type_ids_BxL)
        logits_BxL = electra.detect(params, config, hidden_BxLxD)
        losses_BxL = jnp.logaddexp(0.0, jnp.where(inputs.tokens_BxL % 2 == 0, -logits_BxL, logits_BxL))
        return jnp.sum(losses_BxL * valid_BxL) / jnp.sum(valid_BxL), (hidden_BxLxD, logits_BxL)

    (loss, (hidden_BxLxD, logits_BxL)), gradients = jax.value_and_grad(loss_of, has_aux=True)(params)
    hidden_BxLxD = jnp.where(valid_BxL[..., None], hidden_BxLxD, 0)
    return {
        'hidden': hidden_BxLxD,
        'logits': jnp.where(valid_BxL, logits_BxL, 0),
        'loss': loss,
        'gradients': gradients,
    }


def found(name: str, params, config: ModelConfig, inputs: Inputs) -> dict:
    """Ours."""
    return (outputs if name == 'electra_generator' else detected)(params, config, inputs)
