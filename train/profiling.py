"""A trace of some steps, for xprof, TensorBoard's profile plugin or Perfetto."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import jax


class Profile:
    """Traces the steps from `first` to before `stop`, each under its number. A context manager, which ends the trace.

    The device is idle when the trace begins and when it ends, so that the trace holds these steps whole and no other.
    """

    def __init__(self, folder: Path, steps: tuple[int, int], log: Callable[[str], None] = print):
        self._folder, self._steps, self._log = folder, range(*steps), log
        self._running = False

    def step(self, step: int, state: Any) -> AbstractContextManager:
        """To be entered around the dispatch of a step, which starts from `state`."""
        if step in self._steps and not self._running:
            jax.block_until_ready(state)
            jax.profiler.start_trace(self._folder)
            self._running = True
        return jax.profiler.StepTraceAnnotation('train', step_num=step)

    def after(self, step: int, state: Any) -> None:
        """To be called after the dispatch of a step, with what comes of it."""
        if self._running and step + 1 >= self._steps.stop:
            jax.block_until_ready(state)
            self._end()

    def __enter__(self) -> 'Profile':
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._running:
            self._end()

    def _end(self) -> None:
        jax.profiler.stop_trace()
        self._running = False
        self._log(f'trace of steps {self._steps.start} to {self._steps.stop - 1} in {self._folder}')
