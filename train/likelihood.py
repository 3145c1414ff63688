"""Pseudo-log-likelihood per word (Salazar et al. 2020; the pieces of a word masked together: Kauf and Ivanova 2023).

One word is hidden at a time, so the model reads nearly the whole text: a measure at a low masking rate, which favours
arms trained at one. It stands beside the losses at the common rates, not in their place.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from data.store import Split, TokenStore
from data.tokenizer import Tokenizer
from data.vocabulary import Vocabulary
from train.cohort import Cohort
from train.config import Config
from train.evaluate import target_log_probs
from train.figures import figure
from train.heldout_rows import as_rows, chosen_paragraphs, spread
from train.masking import Masked, document_ids
from train.replicas import ReplicaProgram

WORDS = 16
"""Words scored in each paragraph at most, spread evenly over it: each costs a pass over the paragraph."""


def words_of(tokens: np.ndarray, tokenizer: Tokenizer, whole: bool) -> list[np.ndarray]:
    """Positions in `tokens` of the pieces of each word that can be scored, in order.

    A word with a piece that is no ordinary id (unknown) is left out, and so is the last one unless the text is whole:
    pieces of it may be missing.
    """
    starts = tokenizer.starts_word[tokens].copy()
    starts[:1] = True
    words = np.split(np.arange(len(tokens)), np.flatnonzero(starts)[1:])
    ordinary = np.isin(tokens, np.asarray(tokenizer.vocabulary.ordinary))
    return [word for word in (words if whole else words[:-1]) if len(word) and ordinary[word].all()]


def variants(split: Split, tokenizer: Tokenizer, length: int, wanted: int) -> Masked:
    """Rows of the chosen paragraphs, one for each scored word with its pieces masked, as numpy arrays.

    Of a long paragraph the first L - 2 tokens are read.
    """
    vocabulary = tokenizer.vocabulary
    documents = np.arange(len(split.document_offsets) - 1)
    paragraphs, _ = chosen_paragraphs(split, documents, wanted)
    rows, words = [], []
    for row_L, tokens in zip(as_rows(paragraphs, vocabulary, length), paragraphs, strict=True):
        found = words_of(tokens[: length - 2], tokenizer, whole=len(tokens) <= length - 2)
        for index in spread(len(found), WORDS):
            rows.append(row_L)
            words.append(found[index] + 1)  # past the [CLS]
    slots = -(-max(map(len, words), default=1) // 8) * 8
    labels_NxL = np.array(rows, np.int32).reshape(-1, length)
    inputs_NxL = labels_NxL.copy()
    positions_NxM = np.zeros((len(words), slots), np.int32)
    weights_NxM = np.zeros((len(words), slots), np.float32)
    for row, word in enumerate(words):
        inputs_NxL[row, word] = vocabulary.mask
        positions_NxM[row, : len(word)] = word
        weights_NxM[row, : len(word)] = 1
    labels_NxM = np.take_along_axis(labels_NxL, positions_NxM, axis=1)
    return Masked(inputs_NxL, positions_NxM, labels_NxM, weights_NxM, inputs_NxL != labels_NxL)


def likelihood_figures(
    store: TokenStore, cohort: Cohort, params_R: Any, length: int, mesh: jax.sharding.Mesh, stage: int, step: int
) -> list[dict]:
    """'likelihood' of each replica: log probability in nats, summed over a word's pieces, mean over words."""
    evaluation = cohort.config.evaluation
    rows = variants(store.heldout, store.tokenizer, length, evaluation.likelihood_paragraphs)
    if not len(rows.inputs_BxL):
        return []
    program = ReplicaProgram(
        make_log_likelihood(cohort.config, store.tokenizer.vocabulary), mesh, evaluation.batch_size
    )
    log_probs_RxN = program(params_R, rows)
    means_R = np.sum(log_probs_RxN, axis=1, dtype=np.float64) / log_probs_RxN.shape[1]
    return [
        figure(replica, stage, step, 'likelihood', mean) for replica, mean in zip(cohort.replicas, means_R, strict=True)
    ]


def make_log_likelihood(config: Config, vocabulary: Vocabulary):
    """`log_likelihood(params, B masked rows) -> [B]`: each row's summed log probability."""

    def log_likelihood(params, rows: Masked):
        document_ids_BxL = document_ids(rows.inputs_BxL, vocabulary)
        log_probs_BxM, _ = target_log_probs(params, config, rows, document_ids_BxL)
        return jnp.sum(jnp.where(rows.weights_BxM > 0, log_probs_BxM, 0.0), axis=1)

    return log_likelihood
