"""The same held-out sentences, masked at each common rate, with the three best guesses of every replica."""

from typing import Any

import jax
import numpy as np

from data.store import Split, TokenStore
from data.tokenizer import Tokenizer
from model import mlm
from train.cohort import Cohort
from train.config import Config
from train.fixed_masks import fixed_settings, slots_for
from train.heldout_rows import as_rows, chosen_paragraphs, spread
from train.masking import document_ids, mask_rows
from train.replicas import ReplicaProgram
from train.settings import stacked

GUESSES = 3
SHORTEST, LONGEST = 16, 40
"""Pieces of a sentence that is shown."""
TRIED = 50
"""Paragraphs looked at for each sentence wanted."""


def sentences(split: Split, tokenizer: Tokenizer, length: int, wanted: int) -> list[np.ndarray]:
    """Up to `wanted` openings of held-out paragraphs, spread over the text.

    An opening runs to the first piece that ends in a full stop, question mark or exclamation mark and is neither too
    short nor too long to be read in a table; where no paragraph has one (another script) it is its first pieces.
    """
    if not wanted:
        return []
    longest = min(LONGEST, length - 2)
    documents = np.arange(len(split.document_offsets) - 1)
    paragraphs, _ = chosen_paragraphs(split, documents, TRIED * wanted)
    found = (_opening(tokens, tokenizer, longest) for tokens in paragraphs)
    openings = [opening for opening in found if opening is not None] or [tokens[:longest] for tokens in paragraphs]
    return [openings[index] for index in spread(len(openings), wanted)]


def _opening(tokens: np.ndarray, tokenizer: Tokenizer, longest: int) -> np.ndarray | None:
    for index, piece in enumerate(tokenizer.pieces(tokens[:longest])):
        if index + 1 >= min(SHORTEST, longest) and piece.endswith(('.', '?', '!')):
            return tokens[: index + 1]
    return None


def example_records(
    store: TokenStore, cohort: Cohort, params_R: Any, length: int, mesh: jax.sharding.Mesh
) -> list[dict]:
    """Records of kind 'example': pieces of the sentence, masked positions in it, and guesses with probabilities."""
    evaluation, tokenizer = cohort.config.evaluation, store.tokenizer
    texts = sentences(store.heldout, tokenizer, length, evaluation.examples)
    if not texts:
        return []
    slots = slots_for(evaluation.rates, length)
    guess = ReplicaProgram(make_guess(cohort.config, tokenizer.vocabulary, slots), mesh, len(texts))
    rows = (as_rows(texts, tokenizer.vocabulary, length), np.arange(len(texts), dtype=np.int32))
    records = []
    for rate in evaluation.rates:
        settings_R = stacked([fixed_settings(rate)] * len(cohort.replicas))
        results = guess((params_R, settings_R), rows)
        for i, replica in enumerate(cohort.replicas):
            for sentence, text in enumerate(texts):
                guesses = _by_position(tokenizer, *(leaf[i, sentence] for leaf in results))
                records.append(
                    {
                        'kind': 'example',
                        'arm': replica.arm,
                        'seed': replica.seed,
                        'rate': rate,
                        'sentence': sentence,
                        'pieces': tokenizer.pieces(text),
                        'masked': list(guesses),
                        'guesses': {str(position): best for position, best in guesses.items()},
                    }
                )
    return records


def _by_position(tokenizer: Tokenizer, positions_M, used_M, ids_MxG, probabilities_MxG) -> dict[int, list]:
    """Masked position, counted without the [CLS], in order -> its guesses as [piece, probability]."""
    found = {}
    for slot in sorted(np.flatnonzero(used_M), key=lambda slot: positions_M[slot]):
        pieces = tokenizer.pieces(ids_MxG[slot])
        probabilities = [round(float(each), 4) for each in probabilities_MxG[slot]]
        found[int(positions_M[slot]) - 1] = [list(pair) for pair in zip(pieces, probabilities, strict=True)]
    return found


def make_guess(config: Config, vocabulary, slots: int):
    """`guess((params, settings), (tokens_BxL, numbers_B))`: positions, used [B, M]; ids, probabilities [B, M, 3]."""

    def guess(replica, rows):
        params, settings = replica
        tokens_BxL, numbers_B = rows
        document_ids_BxL = document_ids(tokens_BxL, vocabulary)
        masked = mask_rows(
            tokens_BxL, document_ids_BxL, numbers_B, numbers_B * 0, settings, vocabulary, slots=slots, copies=1
        )
        hidden_BxMxD = mlm.encode(
            params, config.model, masked.inputs_BxL, document_ids_BxL, positions_BxM=masked.positions_BxM
        )
        probabilities_BxMxV = jax.nn.softmax(mlm.predict(params, config.model, hidden_BxMxD))
        best_BxMxG, ids_BxMxG = jax.lax.top_k(probabilities_BxMxV, GUESSES)
        return masked.positions_BxM, masked.weights_BxM > 0, ids_BxMxG, best_BxMxG

    return guess
