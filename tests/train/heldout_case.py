"""A small store in memory and untrained replicas, for the tests of what is measured on held-out text."""

import dataclasses
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from model import mlm
from model.config import ModelConfig
from tests.vocabularies import vocabulary_of
from train.cohort import Cohort, Replica
from train.config import Config, EvaluationConfig, MaskingConfig, Stage
from train.mesh import make_mesh

SIZE = 60
VOCABULARY = vocabulary_of(SIZE, 'case')
LENGTH = 18
MODEL = ModelConfig(
    layers=1, width=16, heads=2, feed_forward=32, norm='pre', max_length=LENGTH, vocab_size=SIZE, dropout=0.0
)
EVALUATION = EvaluationConfig(
    rates=(0.15, 0.4), rows=0, curve_rows=4, batch_size=8, likelihood_paragraphs=6, probe_paragraphs=0, examples=3
)
CONFIG = Config(model=MODEL, evaluation=EVALUATION, stages=(Stage(length=LENGTH, batch_size=4, steps=10),))


class LetterTokenizer:
    """Every third id starts a word; every seventh ends a sentence."""

    vocabulary = VOCABULARY
    starts_word = np.arange(SIZE) % 3 == 0

    def pieces(self, ids):
        return [('▁' if i % 3 == 0 else '') + f'p{i}' + ('.' if i % 7 == 0 else '') for i in map(int, ids)]

    def encode(self, texts):
        return [np.array([int(word[1:]) for word in text.split()], np.int32) for text in texts]

    def decode(self, ids):
        return ' '.join(f'p{i}' for i in ids)


def split_of(documents: list[list[list[int]]], labels: list[str] | None = None) -> SimpleNamespace:
    """A split of documents, each a list of paragraphs, each a list of ids."""
    tokens, document_offsets, paragraph_offsets = [], [0], [0]
    for paragraphs in documents:
        for paragraph in paragraphs:
            tokens += paragraph
            paragraph_offsets.append(len(tokens))
        tokens.append(VOCABULARY.sep)
        paragraph_offsets[-1] = len(tokens)
        document_offsets.append(len(tokens))
    return SimpleNamespace(
        joins=None,
        tokens=np.array(tokens, np.uint16),
        document_offsets=np.array(document_offsets),
        paragraph_offsets=np.array(paragraph_offsets),
        labels=labels or [''] * len(documents),
    )


def random_split(seed: int, documents: int = 6, labels: list[str] | None = None) -> SimpleNamespace:
    """Documents of one to four paragraphs of one to forty ordinary ids, a few of them unknown, frequencies uneven."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(documents):
        sizes = rng.integers(1, 40, rng.integers(1, 5))
        drawn = [5 + (rng.integers(0, SIZE - 5, size) * rng.random(size)).astype(int) for size in sizes]
        made.append([[VOCABULARY.unk if rng.random() < 0.03 else int(i) for i in each] for each in drawn])
    return split_of(made, labels)


def store_of(heldout: SimpleNamespace, train: SimpleNamespace | None = None) -> SimpleNamespace:
    return SimpleNamespace(train=train or random_split(99, 20), heldout=heldout, tokenizer=LetterTokenizer())


def cohort_of(*arms: tuple[str, int, dict], **evaluation) -> Cohort:
    """Replicas given as (arm, seed, fields of its MaskingConfig)."""
    config = dataclasses.replace(CONFIG, evaluation=dataclasses.replace(EVALUATION, **evaluation))
    replicas = (
        Replica(arm, seed, dataclasses.replace(config, masking=MaskingConfig(**masking))) for arm, seed, masking in arms
    )
    return Cohort('0', tuple(replicas))


def params_of(seed: int, scale: float = 1.0):
    """New weights; a scale above 1 makes the predictions uneven."""
    return jax.tree.map(lambda leaf: leaf * scale, mlm.init(jax.random.key(seed), MODEL))


def stacked(*params):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *params)


def one_device():
    return make_mesh((1, 1, 1, 1), 1)


@jax.jit
def _logits(params, tokens_1xL, document_ids_1xL):
    return mlm.predict(params, MODEL, mlm.encode(params, MODEL, tokens_1xL, document_ids_1xL))


def log_probs(params, inputs_L: np.ndarray) -> np.ndarray:
    """Log probabilities at every position of a single row, by numpy from the logits: float64 [L, V in use]."""
    inputs_L, document, documents = np.asarray(inputs_L, np.int32), 1, []
    for token in inputs_L:
        documents.append(0 if token == VOCABULARY.pad else document)
        document += token == VOCABULARY.sep
    logits = _logits(params, inputs_L[None], np.array([documents], np.int32))
    logits = np.asarray(logits, np.float64)[0, :, :SIZE]
    return logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
