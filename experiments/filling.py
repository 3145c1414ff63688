"""What a trained model puts in place of each [MASK] of a text."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from data.errors import UserError
from data.tokenizer import Tokenizer
from experiments.fill_mask import MASK
from model import mlm
from train.config import Config
from train.masking import document_ids


class Guess(NamedTuple):
    """One candidate for a [MASK]."""

    piece: str
    probability: float
    text: str
    """The text with this piece in place, other masks left."""


def fill(config: Config, params: Any, tokenizer: Tokenizer, text: str, top: int) -> list[list[Guess]]:
    """The likeliest ordinary pieces at each [MASK], all masks hidden at once.

    Raises:
      UserError: the text has more tokens than the model's longest stage, or the model has no head for this.
    """
    if 'head' not in params:
        raise UserError(
            f'this arm was trained by objective {config.objective.name} and has no MLM head: name another --arm'
        )
    vocabulary = tokenizer.vocabulary
    tokens = np.concatenate([[vocabulary.cls], encode_with_masks(tokenizer, text), [vocabulary.sep]]).astype(np.int32)
    longest = max(stage.length for stage in config.stages)
    if len(tokens) > longest:
        raise UserError(
            f'the text has {len(tokens)} tokens with its [CLS] and [SEP]; this run was trained on {longest}'
        )
    positions = np.flatnonzero(tokens == vocabulary.mask)
    ordinary = np.asarray(vocabulary.ordinary)

    @jax.jit
    def probabilities(params):
        tokens_1xL = jnp.asarray(tokens)[None]
        hidden_1xLxD = mlm.encode(params, config.model, tokens_1xL, document_ids(tokens_1xL, vocabulary))
        logits_1xMxV = mlm.predict(params, config.model, hidden_1xLxD[:, positions])
        return jax.nn.softmax(logits_1xMxV[0])

    found = []
    for position, probability_V in zip(positions, np.asarray(probabilities(params)), strict=True):
        best = ordinary[np.argsort(-probability_V[ordinary], kind='stable')[:top]]
        found.append([_guess(tokenizer, tokens, position, id_, probability_V[id_]) for id_ in best])
    return found


def encode_with_masks(tokenizer: Tokenizer, text: str) -> np.ndarray:
    """Ids of a text in which every '[MASK]' becomes the mask's id; text itself never yields special ids."""
    first, *others = text.split(MASK)
    ids = [tokenizer.encode([first])[0]]
    for part in others:
        ids += [np.array([tokenizer.vocabulary.mask], np.int32), _encode_after_mask(tokenizer, part)]
    return np.concatenate(ids)


def _encode_after_mask(tokenizer: Tokenizer, part: str) -> np.ndarray:
    """Ids of what follows a mask. Without a space between them it goes on with the word, as a full stop does.

    A tokenizer puts a word's start before any text, so such a part is encoded after something that is cut off again.
    """
    if part and not part[0].isspace():
        for before in ('a', '(', '1'):
            prefix, whole = tokenizer.encode([before, before + part])
            if np.array_equal(whole[: len(prefix)], prefix):
                return whole[len(prefix) :]
    return tokenizer.encode([part])[0]


def _guess(tokenizer: Tokenizer, tokens: np.ndarray, position: int, id_: int, probability: float) -> Guess:
    filled = tokens[1:-1].copy()
    filled[position - 1] = id_
    first, *others = np.split(filled, np.flatnonzero(filled == tokenizer.vocabulary.mask))
    shown = tokenizer.decode(first)
    for run in others:
        after = run[1:]  # past the mask
        space = ' ' if len(after) and tokenizer.starts_word[after[0]] else ''
        shown += f' {MASK}{space}{tokenizer.decode(after)}'
    return Guess(tokenizer.pieces([id_])[0], float(probability), shown.strip())
