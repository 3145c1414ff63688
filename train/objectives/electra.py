"""ELECTRA (Clark et al. 2020): a generator's MLM loss, and telling which tokens it replaced."""

import jax
import jax.numpy as jnp

from data.vocabulary import Vocabulary
from model import electra
from model.mlm import Params
from train.config import Config
from train.objectives import generation
from train.objectives.objective import Inputs, Objective, Pairs
from train.objectives.ranking import ranking


def weights(config: Config, inputs: Inputs) -> dict[str, jax.Array]:
    return {**generation.weights(config, inputs), 'detection': jnp.sum(_scored(config, inputs))}


def loss(
    params: Params, config: Config, vocabulary: Vocabulary, inputs: Inputs, key: jax.Array
) -> tuple[dict[str, jax.Array], Pairs]:
    made = generation.generate(params, config, vocabulary, inputs, key)
    positions_BxM = None if config.objective.detect == 'all' else inputs.masked.positions_BxM
    hidden_BxLxD = generation.encoded(params, config, made, inputs, key, positions_BxM)
    logits_BxL = electra.detect(params, config.model, hidden_BxLxD)
    # A sample that is the token that was there counts as original.
    fake_BxL = made.tokens_BxL != inputs.tokens_BxL
    if positions_BxM is not None:
        fake_BxL = jnp.take_along_axis(fake_BxL, positions_BxM, axis=1)
    scored_BxL = _scored(config, inputs)
    total = summed_loss(logits_BxL, fake_BxL, scored_BxL)
    metrics = {**made.metrics, 'detection_loss': (total, jnp.sum(scored_BxL))}
    metrics |= detection_metrics(jax.lax.stop_gradient(logits_BxL), fake_BxL, scored_BxL)
    return {**made.sums, 'detection': config.objective.detection_weight * total}, metrics


def summed_loss(logits_BxL: jax.Array, fake_BxL: jax.Array, scored_BxL: jax.Array) -> jax.Array:
    """Binary cross-entropy in nats, summed over the scored tokens."""
    losses_BxL = jax.nn.softplus(jnp.where(fake_BxL, -logits_BxL, logits_BxL))
    return jnp.sum(jnp.where(scored_BxL > 0, losses_BxL, 0.0))


def detection_metrics(logits_BxL: jax.Array, fake_BxL: jax.Array, scored_BxL: jax.Array) -> Pairs:
    """Share of fakes; accuracy, precision and recall of calling fake what is likelier so; area under the ROC curve."""
    is_fake_BxL, is_real_BxL = (scored_BxL * side.astype(jnp.float32) for side in (fake_BxL, ~fake_BxL))
    called_BxL = (logits_BxL > 0).astype(jnp.float32)
    scored, fakes, called = jnp.sum(scored_BxL), jnp.sum(is_fake_BxL), jnp.sum(scored_BxL * called_BxL)
    found = jnp.sum(is_fake_BxL * called_BxL)
    return {
        'fake_share': (fakes, scored),
        'detection_accuracy': (scored - fakes - called + 2 * found, scored),
        'precision': (found, called),
        'recall': (found, fakes),
        'auc': ranking(logits_BxL, is_fake_BxL, is_real_BxL),
    }


def _scored(config: Config, inputs: Inputs) -> jax.Array:
    """float32, 1 where detection is scored: [B, L], or [B, M] where it is at the chosen tokens alone."""
    if config.objective.detect == 'chosen':
        return inputs.masked.weights_BxM
    return (inputs.document_ids_BxL > 0).astype(jnp.float32)


ELECTRA = Objective(weights, loss, lambda config: generation.declared(config, 'detection'), electra.encoder)
