"""Who carries out a step's tasks: this process, a process a core, or Apache Beam."""

import contextlib
import multiprocessing
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import Any

from tqdm import tqdm

from data.errors import Unfinished

Runner = Callable[[str, Callable[[Any], None], Sequence[Any]], None]
"""Called with a step's name, its function and its tasks; returns when all are done.

A task's result is its files. It says about how many bytes it has to do with (`size`) and can be pickled.
"""
BYTES_A_WORKER = 8 << 20
"""A process is worth its start if it has as much to do with."""


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count() or 1  # macOS: all


def one_by_one(name: str, step: Callable[[Any], None], tasks: Sequence[Any]) -> None:
    """In this process."""
    for task in _shown(name, tasks, len(tasks)):
        step(task)


def all_cores(name: str, step: Callable[[Any], None], tasks: Sequence[Any]) -> None:
    """In a process a core; little work in this one.

    Raises:
      UserError: a task's own; of several, that of the first task.
      Unfinished: a process was killed.
    """
    workers = min(cores(), len(tasks), sum(task.size for task in tasks) // BYTES_A_WORKER)
    if workers < 2:
        return one_by_one(name, step, tasks)
    # Not forked: JAX may run in this process, and its threads do not survive that.
    context = multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_begin) as pool:
        try:
            for _ in _shown(name, pool.map(step, tasks), len(tasks)):
                pass
        except BrokenProcessPool:
            raise Unfinished(
                f'{name}: a process of {workers} was killed, most likely for want of memory: use fewer cores '
                '(taskset), or shorter documents; the same command goes on from here'
            ) from None
        except BaseException:
            pool.shutdown(cancel_futures=True)  # no task may write any more when the caller cleans up
            raise


def _shown(name: str, items: Any, count: int) -> Any:
    return tqdm(items, total=count, desc=name, unit='task', disable=None, leave=False)


def _begin() -> None:
    """At the start of a worker process."""
    os.environ['TOKENIZERS_PARALLELISM'] = 'false'  # every core has its process
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for tasks for ever."""
    parent = multiprocessing.parent_process()
    with contextlib.suppress(OSError):
        wait([parent.sentinel])
    os._exit(1)
