"""MLM with the span-boundary objective: each target also from what stands around its span (Joshi et al. 2020, 3.2).

A span is a longest stretch of corrupted tokens, whatever unit they were chosen by. Units that touch are one span, as in
the authors' code, so both boundaries are tokens that the model is shown as they are; so are a unit that the row's
budget cut, single tokens, and tokens that are corrupted and not scored. No special token is ever corrupted: spans end
at [CLS] and [SEP], which are boundaries like others. (The authors' code has no boundary loss for spans there, and none
for tokens beyond a span's first 15 or so. Here every target has both losses; see `model/boundary.py` for long spans.)

Both losses are means over the same targets and weigh the same. Nothing is drawn but the masks, which are those of MLM.
"""

from functools import partial

import jax
import jax.numpy as jnp

from data.vocabulary import Vocabulary
from model import boundary, mlm
from model.bert import rows_at
from model.config import ModelConfig
from model.mlm import Params
from train.config import Config
from train.objectives.cross_entropy import cross_entropy
from train.objectives.masked_lm import predicted
from train.objectives.objective import Inputs, Objective, Pairs
from train.parts import in_parts


def weights(config: Config, inputs: Inputs) -> dict[str, jax.Array]:
    targets = jnp.sum(inputs.masked.weights_BxM)
    return {'mlm': targets, 'boundary': targets}


def loss(
    params: Params, config: Config, vocabulary: Vocabulary, inputs: Inputs, key: jax.Array
) -> tuple[dict[str, jax.Array], Pairs]:
    masked, model = inputs.masked, config.model
    length, slots = masked.inputs_BxL.shape[1], masked.positions_BxM.shape[1]
    before_BxM, after_BxM = (
        jnp.take_along_axis(side_BxL, masked.positions_BxM, axis=1) for side_BxL in boundaries(masked.chosen_BxL)
    )
    wanted_Bx3M = jnp.concatenate([masked.positions_BxM, before_BxM, after_BxM], axis=1)
    rows = (masked.inputs_BxL, inputs.document_ids_BxL, inputs.type_ids_BxL)
    if config.objective.states(length, slots) < length:
        hidden_Bx3MxD = mlm.encode(params, model, *rows, key, wanted_Bx3M)
    else:
        hidden_Bx3MxD = rows_at(mlm.encode(params, model, *rows, key), wanted_Bx3M)
    own_BxMxD, *sides = jnp.split(hidden_Bx3MxD, 3, axis=1)
    of_tokens, right = predicted(params, model, own_BxMxD, masked.labels_BxM, masked.weights_BxM)
    arrays = (masked.labels_BxM, masked.weights_BxM, masked.positions_BxM - before_BxM)
    of_spans, (right_of_spans, _) = in_parts(
        partial(_part, model), boundary.head_of(params, model), jnp.concatenate(sides, axis=-1), arrays
    )
    targets = jnp.sum(masked.weights_BxM)
    metrics = {
        'mlm_loss': (of_tokens, targets),
        'mlm_accuracy': (right, targets),
        'boundary_loss': (of_spans, targets),
        'boundary_accuracy': (right_of_spans, targets),
    }
    return {'mlm': of_tokens, 'boundary': of_spans}, metrics


def _part(model: ModelConfig, params, sides_BxMx2D, labels_BxM, weights_BxM, offsets_BxM):
    logits_BxMxV = boundary.predict(params, model, sides_BxMx2D, offsets_BxM)
    total, right = cross_entropy(logits_BxMxV, labels_BxM, weights_BxM)
    return total, (right, ())


def boundaries(chosen_BxL: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Positions of the nearest tokens that are not chosen, before and after each that is: int32, [B, L] each.

    Of a token that is not chosen, its own. Every row begins and ends with tokens that cannot be chosen.
    """
    last = chosen_BxL.shape[1] - 1
    positions_1xL = jnp.arange(last + 1, dtype=jnp.int32)[None]
    before_BxL = jax.lax.cummax(jnp.where(chosen_BxL, 0, positions_1xL), axis=1)
    after_BxL = jax.lax.cummin(jnp.where(chosen_BxL, last, positions_1xL), axis=1, reverse=True)
    return before_BxL, after_BxL


def declared(config: Config) -> Params:
    return {**mlm.declared(config.model), **boundary.declared(config.model)}


def encoder(params: Params) -> Params:
    return {name: part for name, part in params.items() if name != boundary.NAME}


MLM_WITH_BOUNDARY = Objective(weights, loss, declared, encoder)
