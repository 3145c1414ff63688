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


def probe_figures(
    store: TokenStore, cohort: Cohort, params_R: Any, length: int, mesh: jax.sharding.Mesh, stage: int, step: int
) -> tuple[list[dict], str]:
    """'probe' of each replica and 'probe_majority' of none: accuracy on test paragraphs, in percent.

    Returns:
      The figures, and, if there are none, why.
    """
    evaluation = cohort.config.evaluation
    labels, vocabulary = store.heldout.labels, store.tokenizer.vocabulary
    learn, test = split_documents(labels)
    if len({labels[index] for index in learn}) < 2:
        return [], 'no probe: the held-out documents have fewer than two labels'
    if not len(test):
        return [], 'no probe: no label has two held-out documents'
    documents = np.concatenate([learn, test])
    paragraphs, owners = chosen_paragraphs(store.heldout, documents, evaluation.probe_paragraphs)
    tested, label_P = np.isin(owners, test), np.array([labels[owner] for owner in owners])
    if not tested.any() or len(set(label_P[~tested])) < 2:
        return [], 'no probe: too few held-out paragraphs'
    program = ReplicaProgram(make_features(cohort.config, vocabulary), mesh, evaluation.batch_size)
    features_RxPxD = program(params_R, (as_rows(paragraphs, vocabulary, length),))
    task = 'century' if cohort.config.data.corpus == 'sotu' else 'label'
    found = [figure(None, None, None, 'probe_majority', majority(label_P, tested), task=task)]
    for replica, features_PxD in zip(cohort.replicas, features_RxPxD, strict=True):
        if not np.isfinite(features_PxD).all():  # the replica failed
            continue
        found.append(figure(replica, stage, step, 'probe', accuracy(features_PxD, label_P, tested), task=task))
    return found, ''


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
