"""Replace MLM (Clark et al. 2020, Section 3.4): MLM whose chosen tokens are samples of a generator, not [MASK]."""

import jax
import jax.numpy as jnp

from data.vocabulary import Vocabulary
from model import electra
from model.mlm import Params
from train.config import Config
from train.objectives import generation
from train.objectives.masked_lm import predicted
from train.objectives.masked_lm import weights as mlm_weights
from train.objectives.objective import Inputs, Objective, Pairs


def weights(config: Config, inputs: Inputs) -> dict[str, jax.Array]:
    return {**generation.weights(config, inputs), **mlm_weights(config, inputs)}


def loss(
    params: Params, config: Config, vocabulary: Vocabulary, inputs: Inputs, key: jax.Array
) -> tuple[dict[str, jax.Array], Pairs]:
    made, masked = generation.generate(params, config, vocabulary, inputs, key), inputs.masked
    hidden_BxMxD = generation.encoded(params, config, made, inputs, key, masked.positions_BxM)
    total, right = predicted(electra.encoder(params), config.model, hidden_BxMxD, masked.labels_BxM, masked.weights_BxM)
    weight = jnp.sum(masked.weights_BxM)
    metrics = {**made.metrics, 'mlm_loss': (total, weight), 'mlm_accuracy': (right, weight)}
    return {**made.sums, 'mlm': total}, metrics


REPLACE_MLM = Objective(weights, loss, lambda config: generation.declared(config, 'head'), electra.encoder)
