"""Which epoch's weights each replica keeps, and when it stops: a function of its scores so far."""

import numpy as np


class Course:
    """Scores after each epoch, of replicas that stop one by one."""

    def __init__(self, replicas: int, patience: int):
        """`patience`: epochs without a better score after which a replica stops; 0: none ever does."""
        self._replicas, self._patience = replicas, patience
        self.history: list[list[float | None]] = []
        """Scores [R] after each epoch; None where there was none."""

    def add(self, scores_R: np.ndarray) -> np.ndarray:
        """Takes the scores after an epoch; bool [R]: whose weights are now the best it had."""
        before = self.best_R
        self.history.append([float(score) if np.isfinite(score) else None for score in scores_R])
        return (self.best_R == len(self.history) - 1) & ((before != self.best_R) | (len(self.history) == 1))

    @property
    def best_R(self) -> np.ndarray:
        """The epoch, from 0, with each replica's best score before it stopped; of equals the first."""
        return np.array([self._followed(replica)[0] for replica in range(self._replicas)], np.int64)

    @property
    def running_R(self) -> np.ndarray:
        """bool [R]: who has not stopped."""
        return np.array([self._followed(replica)[1] for replica in range(self._replicas)], bool)

    def _followed(self, replica: int) -> tuple[int, bool]:
        best, at = -np.inf, 0
        for epoch, scores in enumerate(self.history):
            score = -np.inf if scores[replica] is None else scores[replica]
            if score > best:
                best, at = score, epoch
            elif self._patience and epoch - at >= self._patience:
                return at, False
        return at, True
