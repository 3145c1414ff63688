"""What counting alone can do: a token's probability from its frequency and from its neighbours'.

Counted on the training text and scored on the very targets of `HeldOut`, reading the corrupted row: a neighbour that is
[MASK] tells nothing, nor does the edge of a row, since rows are cut anywhere.

Each model is interpolated with the next simpler one by Witten and Bell's rule (1991, method C), so that each is a
distribution over the ordinary ids: P(w | c) = (n(c, w) + t(c) P'(w)) / (n(c) + t(c)), with t(c) the number of different
tokens seen in context c. P' is, for the unigram, uniform; for one neighbour, the unigram; for both neighbours at once,
the mean of the left's and the right's.
"""

import jax
import numpy as np

from data.store import Split, TokenStore
from data.vocabulary import Vocabulary
from train.config import Config
from train.figures import figure
from train.fixed_masks import fixed_settings, slots_for
from train.heldout_rows import heldout_rows
from train.masking import Masked, document_ids, mask_rows
from train.settings import Settings

COUNTED = 20_000_000
"""Training tokens that are counted at most, the first of the text."""
_LOSSES = ('unigram_loss', 'left_loss', 'both_loss')


class Conditional:
    """P(token | context) by counting, interpolated with a simpler distribution."""

    def __init__(self, contexts: np.ndarray, tokens: np.ndarray, size: int):
        """Counts pairs; contexts are any integers from 0, tokens integers in [0, size)."""
        self._size = size
        self._pairs, self._counts = np.unique(contexts.astype(np.int64) * size + tokens, return_counts=True)
        self._contexts, first, self._types = np.unique(self._pairs // size, return_index=True, return_counts=True)
        self._totals = np.add.reduceat(self._counts, first) if len(first) else self._counts

    def __call__(self, contexts: np.ndarray, tokens: np.ndarray, simpler: np.ndarray) -> np.ndarray:
        """Probability of each token in its context; `simpler` is its probability under the simpler distribution."""
        count = _looked_up(self._pairs, self._counts, contexts.astype(np.int64) * self._size + tokens)
        total = _looked_up(self._contexts, self._totals, contexts)
        types = _looked_up(self._contexts, self._types, contexts)
        return np.where(total > 0, (count + types * simpler) / np.maximum(total + types, 1), simpler)


def _looked_up(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """values[where keys == wanted], 0 where there is none; keys are sorted."""
    if not len(keys):
        return np.zeros(wanted.shape, np.int64)
    index = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[index] == wanted, values[index], 0)


class Counts:
    """The three baselines of a training text."""

    def __init__(self, tokens: np.ndarray, vocabulary: Vocabulary):
        tokens = np.asarray(tokens[:COUNTED], np.int64)
        self._vocabulary = vocabulary
        self._size = size = vocabulary.size
        self._is_ordinary = np.zeros(size, bool)
        self._is_ordinary[np.asarray(vocabulary.ordinary)] = True
        before, token, after = tokens[:-2], tokens[1:-1], tokens[2:]
        scored = self._is_ordinary[token]
        before, token, after = before[scored], token[scored], after[scored]
        self._alone = Conditional(np.zeros_like(token), token, size)
        self._left = Conditional(before, token, size)
        self._right = Conditional(after, token, size)
        self._both = Conditional(before * size + after, token, size)

    def unigram(self, tokens: np.ndarray) -> np.ndarray:
        """P(token), for ordinary ids of any shape."""
        uniform = np.full(tokens.shape, 1 / len(self._vocabulary.ordinary))
        return self._alone(np.zeros_like(tokens), tokens, uniform)

    def left(self, left: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """P(token | its left neighbour); -1 stands for a neighbour that tells nothing."""
        unigram = self.unigram(tokens)
        return np.where(left >= 0, self._left(left, tokens, unigram), unigram)

    def both(self, left: np.ndarray, right: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """P(token | both neighbours); -1 stands for a neighbour that tells nothing, and then the other decides."""
        unigram = self.unigram(tokens)
        from_left, from_right = self._left(left, tokens, unigram), self._right(right, tokens, unigram)
        together = self._both(left.astype(np.int64) * self._size + right, tokens, (from_left + from_right) / 2)
        return np.select(
            [(left >= 0) & (right >= 0), left >= 0, right >= 0], [together, from_left, from_right], unigram
        )

    def losses(self, masked: Masked) -> dict[str, tuple[float, float]]:
        """Metric -> (summed cross-entropy in nats, number of targets)."""
        inputs_BxL = np.asarray(masked.inputs_BxL, np.int64)
        row, slot = np.nonzero(np.asarray(masked.weights_BxM))
        position = np.asarray(masked.positions_BxM)[row, slot]
        token = np.asarray(masked.labels_BxM, np.int64)[row, slot]
        told_BxL = _told(inputs_BxL, self._vocabulary)
        left, right = told_BxL[row, position - 1], told_BxL[row, position + 1]
        probabilities = (self.unigram(token), self.left(left, token), self.both(left, right, token))
        sums = [float(-np.log(each).sum()) for each in probabilities]
        return {name: (loss, float(len(token))) for name, loss in zip(_LOSSES, sums, strict=True)}


def _told(inputs_BxL: np.ndarray, vocabulary: Vocabulary) -> np.ndarray:
    """Ids as neighbours: -1, which tells nothing, for [MASK], [CLS], padding and the [SEP] that closes the row."""
    closing_BxL = inputs_BxL == vocabulary.sep
    closing_BxL[:, :-1] &= inputs_BxL[:, 1:] == vocabulary.pad
    silent_BxL = closing_BxL | np.isin(inputs_BxL, [vocabulary.mask, vocabulary.cls, vocabulary.pad])
    return np.where(silent_BxL, -1, inputs_BxL)


def unigram_entropy(split: Split, vocabulary: Vocabulary) -> float:
    """Entropy in nats of the ordinary tokens' own frequencies in a text: no fixed guess can have a lower loss on it."""
    frequencies = np.bincount(np.asarray(split.tokens), minlength=vocabulary.size)[np.asarray(vocabulary.ordinary)]
    shares = frequencies[frequencies > 0] / frequencies.sum()
    return float(-np.sum(shares * np.log(shares)))


def baselines_known(records: list[dict], config: Config) -> bool:
    """Whether records hold every figure of `baseline_figures`: a process killed while it wrote them leaves some."""
    known = {(each['metric'], each['eval_rate']) for each in records if each['kind'] == 'figure' and not each['arm']}
    rated = {(metric, rate) for metric in _LOSSES for rate in config.evaluation.rates}
    return {('unigram_entropy', None), *rated} <= known


def baseline_figures(store: TokenStore, config: Config, length: int) -> list[dict]:
    """unigram_entropy of the held-out text, and the loss of each baseline at each common rate (nats a target)."""
    vocabulary = store.tokenizer.vocabulary
    counts = Counts(store.train.tokens, vocabulary)
    tokens_NxL, row_ids_N = heldout_rows(store.heldout, vocabulary, length, config.evaluation.rows)
    slots = slots_for(config.evaluation.rates, length)
    found = [figure(None, None, None, 'unigram_entropy', unigram_entropy(store.heldout, vocabulary))]

    @jax.jit
    def mask(settings: Settings, tokens_NxL: jax.Array, row_ids_N: jax.Array) -> Masked:
        ids = document_ids(tokens_NxL, vocabulary)
        return mask_rows(tokens_NxL, ids, row_ids_N, row_ids_N * 0, settings, vocabulary, slots=slots, copies=1)

    for rate in config.evaluation.rates:
        for metric, (loss, weight) in counts.losses(mask(fixed_settings(rate), tokens_NxL, row_ids_N)).items():
            found.append(figure(None, None, None, metric, loss / weight, rate))
    return found
