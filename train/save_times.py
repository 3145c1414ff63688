"""When a run saves its state. Which steps are kept then is for `train.checkpoints` to see to."""

from train.config import RunConfig


class SaveTimes:
    """Saves at steps that are kept for good, and by time, of which the newest alone are kept (as levanter does)."""

    def __init__(self, run: RunConfig, now: float):
        """`now`: seconds on any clock that does not go back, the same clock at every call."""
        self._every, self._seconds = run.keep_every, run.checkpoint_seconds
        self._saved_at = now

    def due(self, now: float) -> bool:
        """Whether it is time to save."""
        return now - self._saved_at >= self._seconds

    def kept(self, step: int) -> bool:
        """Whether the state after `step` updates is one to be kept for good, which no clock decides."""
        return bool(self._every and step % self._every == 0)

    def saved(self, now: float) -> None:
        """To be told of every save, whatever it was for: the seconds count from the last."""
        self._saved_at = now
