"""How much of a document's label can be read off frozen features: logistic regression on mean-pooled states.

The documents are held out of pretraining, and split by document into those that the probe learns from and those that it
is tested on, the same for every arm and seed. There are few documents, so the figure is about these documents; the
share of the commonest label stands beside it.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from data.splits import split_documents
from data.store import TokenStore
from data.vocabulary import Vocabulary
from model import mlm
from train.cohort import Cohort
from train.config import Config
from train.figures import figure
from train.heldout_rows import as_rows, chosen_paragraphs
from train.masking import document_ids
from train.replicas import ReplicaProgram


class Paragraphs:
    """The held-out paragraphs that probes learn from and are tested on."""

    def __init__(self, store: TokenStore, wanted: int):
        """Chooses them; `reason` says why there is no probe, where there is none.

        Args:
          wanted: paragraphs (0: all).
        """
        labels = store.heldout.labels
        learn, test = split_documents(labels)
        self.tokens, owners = chosen_paragraphs(store.heldout, np.concatenate([learn, test]), wanted)
        self.tested_P, self.label_P = np.isin(owners, test), np.array([labels[owner] for owner in owners])
        self.reason = self._lacking(len({labels[index] for index in learn}), len(test))

    def _lacking(self, learnt: int, tested: int) -> str:
        if learnt < 2:
            return 'no probe of the frozen features, which needs held-out documents of two labels or more'
        if not tested:
            return 'no probe of the frozen features: no label has two held-out documents'
        if not self.tested_P.any() or len(set(self.label_P[~self.tested_P])) < 2:
            return 'no probe of the frozen features: too few held-out paragraphs'
        return ''


class Probe:
    """The probe of one cohort: its paragraphs, and a program that turns them into features."""

    def __init__(self, store: TokenStore, cohort: Cohort, length: int, mesh: jax.sharding.Mesh, wanted: int):
        """Makes the program; `reason` says why there is no probe, where there is none.

        Args:
          wanted: paragraphs (0: all).
        """
        self._cohort = cohort
        self._task = 'century' if cohort.config.data.corpus == 'sotu' else 'label'
        vocabulary = store.tokenizer.vocabulary
        paragraphs = Paragraphs(store, wanted)
        self._tested_P, self._label_P, self.reason = paragraphs.tested_P, paragraphs.label_P, paragraphs.reason
        self._rows = (as_rows(paragraphs.tokens, vocabulary, length),)
        self._program = ReplicaProgram(
            make_features(cohort.config, vocabulary), mesh, cohort.config.evaluation.batch_size
        )

    def majority(self, metric: str = 'probe_majority') -> list[dict]:
        """`metric`, of no replica: percent of the tested paragraphs that have the commonest label."""
        if self.reason:
            return []
        share = majority(self._label_P, self._tested_P)
        return [figure(None, None, None, metric, share, task=self._task)]

    def figures(self, params_R: Any, stage: int, step: int, metric: str = 'probe') -> list[dict]:
        """`metric` of each replica that has not failed: accuracy on the tested paragraphs, in percent."""
        if self.reason:
            return []
        found = []
        for replica, features_PxD in zip(self._cohort.replicas, self._program(params_R, self._rows), strict=True):
            if np.isfinite(features_PxD).all():
                value = accuracy(features_PxD, self._label_P, self._tested_P)
                found.append(figure(replica, stage, step, metric, value, task=self._task))
        return found


def accuracy(features_PxD: np.ndarray, label_P: np.ndarray, tested_P: np.ndarray) -> float:
    """Percent of the tested paragraphs that a classifier fitted on the others gets right."""
    # Imported here: it takes a second, which a run that is only being taken up again need not spend.
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    classifier.fit(features_PxD[~tested_P].astype(np.float64), label_P[~tested_P])
    return 100 * float(classifier.score(features_PxD[tested_P].astype(np.float64), label_P[tested_P]))


def majority(label_P: np.ndarray, tested_P: np.ndarray) -> float:
    """Percent of the tested paragraphs that have the commonest label of the others."""
    names, counts = np.unique(label_P[~tested_P], return_counts=True)
    return 100 * float(np.mean(label_P[tested_P] == names[np.argmax(counts)]))


def make_features(config: Config, vocabulary: Vocabulary):
    """`features(params, (tokens_BxL,)) -> [B, D]`: mean final hidden state of the tokens between [CLS] and [SEP]."""

    def features(params, rows):
        (tokens_BxL,) = rows
        document_ids_BxL = document_ids(tokens_BxL, vocabulary)
        hidden_BxLxD = mlm.encode(params, config.model, tokens_BxL, document_ids_BxL).astype(jnp.float32)
        inside_BxL = (document_ids_BxL > 0) & (tokens_BxL != vocabulary.cls) & (tokens_BxL != vocabulary.sep)
        total_BxD = jnp.einsum('BLD,BL->BD', hidden_BxLxD, inside_BxL.astype(jnp.float32))
        return total_BxD / jnp.maximum(inside_BxL.sum(axis=1, keepdims=True), 1)

    return features
