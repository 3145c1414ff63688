"""Masked language modelling (Devlin et al. 2019, Section 3.1)."""

from functools import partial

import jax
import jax.numpy as jnp

from data.vocabulary import Vocabulary
from model import mlm
from model.config import ModelConfig
from model.mlm import Params
from train.config import Config
from train.objectives.cross_entropy import cross_entropy
from train.objectives.objective import Inputs, Objective, Pairs
from train.parts import in_parts


def predicted(
    params: Params, model: ModelConfig, hidden_BxMxD: jax.Array, labels_BxM: jax.Array, weights_BxM: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Summed loss of the MLM head at these states, and the number of right guesses; few logits exist at once."""
    head, arrays = mlm.head_of(params, model), (labels_BxM, weights_BxM)
    loss, (right, _) = in_parts(partial(_part, model), head, hidden_BxMxD, arrays)
    return loss, right


def _part(model, params, hidden_BxMxD, labels_BxM, weights_BxM):
    loss, right = cross_entropy(mlm.predict(params, model, hidden_BxMxD), labels_BxM, weights_BxM)
    return loss, (right, ())


def weights(config: Config, inputs: Inputs) -> dict[str, jax.Array]:
    return {'mlm': jnp.sum(inputs.masked.weights_BxM)}


def loss(
    params: Params, config: Config, vocabulary: Vocabulary, inputs: Inputs, key: jax.Array
) -> tuple[dict[str, jax.Array], Pairs]:
    masked = inputs.masked
    rows = (masked.inputs_BxL, inputs.document_ids_BxL, inputs.type_ids_BxL)
    hidden_BxMxD = mlm.encode(params, config.model, *rows, key, masked.positions_BxM)
    total, right = predicted(params, config.model, hidden_BxMxD, masked.labels_BxM, masked.weights_BxM)
    weight = jnp.sum(masked.weights_BxM)
    return {'mlm': total}, {'loss': (total, weight), 'accuracy': (right, weight)}


MASKED_LM = Objective(weights, loss)
