"""MLM with a judgement of the pair that a row is: does the second segment follow the first?

Next-sentence prediction (Devlin et al. 2019, Section 3.1) and sentence order (Lan et al. 2020, Section 3.1) differ in
the rows alone (`data/pair_rows.py`). The head is that of a classification: pooler and two logits, of which the second
says that it does not follow. Both losses are means, of targets and of rows, and weigh the same.
"""

import jax
import jax.numpy as jnp

from data.vocabulary import Vocabulary
from model import mlm
from model.config import ModelConfig
from model.heads import apply_head, declared_head
from model.mlm import Params
from train.config import Config
from train.objectives.cross_entropy import cross_entropy
from train.objectives.masked_lm import predicted
from train.objectives.objective import Inputs, Objective, Pairs

HEAD = 'pair'
"""Where its parameters are, beside the encoder's."""


def weights(config: Config, inputs: Inputs) -> dict[str, jax.Array]:
    return {
        'mlm': jnp.sum(inputs.masked.weights_BxM),
        'pair': jnp.float32(inputs.pair_labels_B.shape[0]),
    }


def loss(
    params: Params, config: Config, vocabulary: Vocabulary, inputs: Inputs, key: jax.Array
) -> tuple[dict[str, jax.Array], Pairs]:
    masked = inputs.masked
    # The state of [CLS], then those of the targets.
    positions_BxM = jnp.pad(masked.positions_BxM, ((0, 0), (1, 0)))
    hidden_BxMxD = mlm.encode(
        params, config.model, masked.inputs_BxL, inputs.document_ids_BxL, inputs.type_ids_BxL, key, positions_BxM
    )
    of_tokens, right = predicted(params, config.model, hidden_BxMxD[:, 1:], masked.labels_BxM, masked.weights_BxM)
    logits_BxC = judge(params, config.model, hidden_BxMxD[:, :1])
    labels_Bx1 = inputs.pair_labels_B[:, None]
    of_pairs, right_pairs = cross_entropy(logits_BxC[:, None], labels_Bx1, jnp.ones(labels_Bx1.shape))
    targets, rows = jnp.sum(masked.weights_BxM), jnp.float32(len(labels_Bx1))
    metrics = {
        'mlm_loss': (of_tokens, targets),
        'mlm_accuracy': (right, targets),
        'pair_loss': (of_pairs, rows),
        'pair_accuracy': (right_pairs, rows),
    }
    return {'mlm': of_tokens, 'pair': of_pairs}, metrics


def judge(params: Params, model: ModelConfig, hidden_Bx1xD: jax.Array) -> jax.Array:
    """Logits [B, 2], float32, that the second segment follows and that it does not, from the states of [CLS]."""
    lengths_B = jnp.ones(len(hidden_Bx1xD), jnp.int32)
    return apply_head(params[HEAD], model, 'classification', 2, hidden_Bx1xD, lengths_B)


def declared(config: Config) -> Params:
    return {**mlm.declared(config.model), HEAD: declared_head(config.model, 'classification', 2)}


def encoder(params: Params) -> Params:
    """With the pooler, from which fine-tuning starts, too (Devlin et al. 2019, Section 3.2)."""
    return {name: part for name, part in params.items() if name != HEAD} | {'pooler': params[HEAD]['pooler']}


MLM_WITH_PAIRS = Objective(weights, loss, declared, encoder)
