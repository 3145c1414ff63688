"""All-tokens MLM (Clark et al. 2020, Section 3.4): the original of every token, copied or predicted.

As in replace MLM the chosen tokens are a generator's samples. A gate g, learnt for each token, mixes copying the token
that is read with the MLM head's softmax: p(w) = g [w is read] + (1 - g) softmax(w). In evaluation, where the chosen
tokens are [MASK], the softmax alone predicts: there is nothing to copy.
"""

from functools import partial

import jax
import jax.numpy as jnp

from data.vocabulary import Vocabulary
from model import electra, mlm
from model.attention import NEVER
from model.mlm import Params
from train.config import Config
from train.objectives import generation
from train.objectives.cross_entropy import judged
from train.objectives.objective import Inputs, Objective, Pairs
from train.parts import in_parts


def weights(config: Config, inputs: Inputs) -> dict[str, jax.Array]:
    return {**generation.weights(config, inputs), 'mlm': jnp.sum(inputs.document_ids_BxL > 0, dtype=jnp.float32)}


def loss(
    params: Params, config: Config, vocabulary: Vocabulary, inputs: Inputs, key: jax.Array
) -> tuple[dict[str, jax.Array], Pairs]:
    made = generation.generate(params, config, vocabulary, inputs, key)
    hidden_BxLxD = generation.encoded(params, config, made, inputs, key)
    head = mlm.head_of(electra.encoder(params), config.model) | {'gate': params['gate']}
    valid_BxL = (inputs.document_ids_BxL > 0).astype(jnp.float32)
    arrays = (inputs.tokens_BxL, made.tokens_BxL, valid_BxL)
    total, (sums, _) = in_parts(partial(_part, config), head, hidden_BxLxD, arrays)
    valid, fakes = jnp.sum(valid_BxL), jnp.sum(valid_BxL * (made.tokens_BxL != inputs.tokens_BxL))
    metrics = {
        **made.metrics,
        'fake_share': (fakes, valid),
        'mlm_loss': (total, valid),
        'mlm_accuracy': (sums['right'], valid),
        'copied': (sums['copied'], valid),
    }
    return {**made.sums, 'mlm': total}, metrics


def _part(config, params, hidden_BxMxD, labels_BxM, read_BxM, weights_BxM):
    """The loss of a stretch of tokens; right guesses of the softmax, and the mean of the gate, summed."""
    log_probs_BxM, right_BxM = judged(mlm.predict(params, config.model, hidden_BxMxD), labels_BxM)
    losses_BxM, gate_BxM = copy_loss(
        log_probs_BxM, electra.gate(params, config.model, hidden_BxMxD), labels_BxM == read_BxM
    )
    sums = {'right': jnp.sum(weights_BxM * right_BxM), 'copied': jnp.sum(weights_BxM * gate_BxM)}
    return jnp.sum(jnp.where(weights_BxM > 0, losses_BxM, 0.0)), (sums, ())


def copy_loss(log_probs_BxM: jax.Array, gates_BxM: jax.Array, same_BxM: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Nats of each token, and how far its gate is open.

    Args:
      log_probs_BxM: the softmax's, of the original token.
      gates_BxM: logits of the gate.
      same_BxM: whether the token that is read is the original.
    """
    copied_BxM = jnp.where(same_BxM, jax.nn.log_sigmoid(gates_BxM), NEVER)
    return -jnp.logaddexp(copied_BxM, jax.nn.log_sigmoid(-gates_BxM) + log_probs_BxM), jax.nn.sigmoid(gates_BxM)


ALL_TOKENS_MLM = Objective(weights, loss, lambda config: generation.declared(config, 'head', 'gate'), electra.encoder)
