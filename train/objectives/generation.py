"""A generator's own loss, and rows with its samples in place of the chosen tokens (Clark et al. 2020, Section 2)."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from data.vocabulary import Vocabulary
from model import electra, mlm
from model.attention import NEVER
from model.config import generator_model
from model.mlm import Params
from train.config import Config
from train.masking import Masked
from train.objectives.cross_entropy import cross_entropy
from train.objectives.objective import Inputs, Pairs
from train.objectives.sampling import sampled, slot_seeds, uniform
from train.parts import in_parts


class Generated(NamedTuple):
    """What comes of a generator."""

    tokens_BxL: jax.Array
    """The text with a sample in place of every target; a sample may be the token that was there."""
    sums: dict[str, jax.Array]
    """The term 'generator' of the loss; none where there is no generator."""
    metrics: Pairs


def generate(params: Params, config: Config, vocabulary: Vocabulary, inputs: Inputs, key: jax.Array) -> Generated:
    """Runs the generator on the masked rows and samples every target from it.

    Args:
      key: the encoder's typed key for dropout; the generator's is another.
    """
    masked, objective = inputs.masked, config.objective
    seeds_BxMx2 = slot_seeds(inputs.noise_Bx3, masked.positions_BxM.shape[1])
    if not objective.has_generator:
        return Generated(placed(uniform(seeds_BxMx2, vocabulary), masked, inputs.tokens_BxL), {}, {})
    model = generator_model(config.model, objective.generator)
    own = electra.generator(params, objective.generator)
    hidden_BxMxD = mlm.encode(
        own,
        model,
        masked.inputs_BxL,
        inputs.document_ids_BxL,
        inputs.type_ids_BxL,
        key=jax.random.fold_in(key, 2),  # `encode` takes 0 and 1
        positions_BxM=masked.positions_BxM,
    )
    arrays = (masked.labels_BxM, masked.weights_BxM, seeds_BxMx2)
    loss, (right, samples_BxM) = in_parts(
        partial(_part, config, model, vocabulary), mlm.head_of(own, model), hidden_BxMxD, arrays
    )
    weight = jnp.sum(masked.weights_BxM)
    metrics = {'generator_loss': (loss, weight), 'generator_accuracy': (right, weight)}
    return Generated(placed(samples_BxM, masked, inputs.tokens_BxL), {'generator': loss}, metrics)


def encoded(
    params: Params, config: Config, made: Generated, inputs: Inputs, key: jax.Array, positions_BxM=None
) -> jax.Array:
    """The encoder's states of the rows that were made: [B, L, D], or [B, M, D] at these positions alone."""
    return mlm.encode(
        electra.encoder(params),
        config.model,
        made.tokens_BxL,
        inputs.document_ids_BxL,
        inputs.type_ids_BxL,
        key=key,
        positions_BxM=positions_BxM,
    )


def _part(config, model, vocabulary, params, hidden_BxMxD, labels_BxM, weights_BxM, seeds_BxMx2):
    logits_BxMxV = mlm.predict(params, model, hidden_BxMxD)
    loss, right = cross_entropy(logits_BxMxV, labels_BxM, weights_BxM)
    if config.objective.sampler == 'disallow_correct':
        is_right_BxMxV = labels_BxM[..., None] == jnp.arange(logits_BxMxV.shape[-1])[None, None]
        logits_BxMxV = jnp.where(is_right_BxMxV, NEVER, logits_BxMxV)
    return loss, (right, sampled(logits_BxMxV, seeds_BxMx2, vocabulary, config.objective.temperature))


def placed(samples_BxM: jax.Array, masked: Masked, tokens_BxL: jax.Array) -> jax.Array:
    """Rows with these ids at their targets, int32 [B, L]; unused slots change nothing.

    By comparing places: a scatter would bring the rows of all devices together.
    """
    length = tokens_BxL.shape[1]
    used_BxM = masked.weights_BxM > 0
    here_BxLxM = (masked.positions_BxM[:, None] == jnp.arange(length)[None, :, None]) & used_BxM[:, None]
    sample_BxL = jnp.sum(jnp.where(here_BxLxM, samples_BxM[:, None], 0), axis=-1)
    return jnp.where(jnp.any(here_BxLxM, axis=-1), sample_BxL, tokens_BxL)


def weights(config: Config, inputs: Inputs) -> dict[str, jax.Array]:
    """What the term 'generator' weighs; no term where there is no generator."""
    return {'generator': jnp.sum(inputs.masked.weights_BxM)} if config.objective.has_generator else {}


def declared(config: Config, *heads: str) -> Params:
    """Boxes of the encoder with these heads ('head' is that of MLM) and of the generator, if there is one."""
    boxes = mlm.declared(config.model)
    mlm_head = {'head': boxes.pop('head')}
    for head in heads:
        boxes |= mlm_head if head == 'head' else electra.declared_head(config.model, head)
    if config.objective.has_generator:
        boxes = electra.with_generator(boxes, config.model, config.objective.generator)
    return boxes
