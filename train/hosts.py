"""Several processes, one a host, that carry out the same run: what they do together.

Each runs the same program on its own devices and rows. What one of them alone can know (what lies on the disk, a
signal, the clock) is settled here, so that all of them take the same way: a process that took another would leave the
rest waiting. In a run of one process nothing here waits for anything.
"""

import contextlib
import itertools
import pickle
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh
from orbax.checkpoint.multihost import get_barrier_sync_fn

from train.sharding import placed

T = TypeVar('T')
PATIENCE_MS = 7 * 24 * 3600 * 1000
"""How long a process waits for the others, which may be busy; one that has died is noticed in between."""
_numbers = itertools.count()


def is_first() -> bool:
    """Whether this process writes the files and speaks for all."""
    return jax.process_index() == 0


def share() -> tuple[int, int]:
    """(i, n): this process is the i-th of n."""
    return jax.process_index(), jax.process_count()


def wait() -> None:
    """Waits for all processes to come here; raises JaxRuntimeError once one has died.

    Gloo, which connects processes on CPUs, gives up on a process that comes 30 seconds after another.
    """
    get_barrier_sync_fn()(key=f'cloze-{next(_numbers)}', timeout_ms=PATIENCE_MS)


def from_first(function: Callable[[], T]) -> T:
    """What `function` returns in the first process, in all of them: the others do not call it.

    Raises:
      whatever it raises in the first process.
    """
    if jax.process_count() == 1:
        return function()
    content = b''
    if is_first():
        try:
            content = pickle.dumps((function(), None))
        except Exception as error:
            content = pickle.dumps((None, error))
    wait()
    size = int(multihost_utils.broadcast_one_to_all(np.int32(len(content))))
    # Few sizes, since each is compiled.
    buffer = np.zeros(1 << max(size - 1, 1 << 10).bit_length(), np.uint8)
    buffer[: len(content)] = np.frombuffer(content, np.uint8)
    value, error = pickle.loads(multihost_utils.broadcast_one_to_all(buffer)[:size].tobytes())
    if error is not None:
        raise error
    return value


def in_any(flag: bool) -> bool:
    """Whether the flag is set in any process; waits for all of them."""
    if jax.process_count() == 1:
        return flag
    wait()
    return bool(np.any(multihost_utils.process_allgather(np.bool_(flag))))


@contextlib.contextmanager
def together(elsewhere: Exception) -> Iterator[None]:
    """What fails in one process fails in all of them: with its own exception there, with `elsewhere` in the others."""
    failed = None
    try:
        yield
    except Exception as error:
        failed = error
    if in_any(failed is not None):
        raise failed or elsewhere


def readable(tree: Any, mesh: Mesh) -> Any:
    """Arrays over the mesh as arrays that this process can read whole; does not wait for them."""
    return tree if jax.process_count() == 1 else jax.jit(_same, out_shardings=placed(mesh))(tree)


def _same(tree: Any) -> Any:
    return tree


class Votes:
    """Asks all processes at each step, and lets none wait: the answer comes a step late, at the same step for all."""

    def __init__(self):
        self._pending: jax.Array | None = None

    def __call__(self, *flags: bool) -> tuple[bool, ...]:
        """For each flag, whether it was set in any process at the call before; in a run of one process, at this one."""
        if jax.process_count() == 1:
            return flags
        before, self._pending = self._pending, _any(np.array(flags))
        return (False,) * len(flags) if before is None else tuple(np.asarray(before).tolist())

    def drop(self) -> None:
        """Forgets the votes of the call before: what they asked for has been done."""
        self._pending = None


def _any(flags_F: np.ndarray) -> jax.Array:
    """Each flag by `or` over the processes, bool [F]; not waited for."""
    mesh = Mesh(np.array(jax.devices()), 'device')
    by_device = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('device'))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    shape = (len(mesh.devices), len(flags_F))
    flags_DxF = jax.make_array_from_callback(shape, by_device, lambda index: flags_F[None])
    return jax.jit(_any_of_first_axis, out_shardings=whole)(flags_DxF)


def _any_of_first_axis(flags_DxF: jax.Array) -> jax.Array:
    return flags_DxF.any(axis=0)
