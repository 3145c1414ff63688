"""Labelled documents to learn from and to test on."""

import numpy as np


def split_documents(labels: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the labelled documents to learn from and to test on.

    Of each label every third document is tested on, at least one if there are two; a label's only document is learnt
    from.
    """
    learn, test = [], []
    for label in sorted(set(labels) - {''}):
        documents = [index for index, each in enumerate(labels) if each == label]
        tested = documents[2::3] or documents[1:]
        test += tested
        learn += [index for index in documents if index not in tested]
    return np.array(sorted(learn), np.int64), np.array(sorted(test), np.int64)
