"""Checkpoints of a run: Orbax behind a narrow boundary.

A step on disk is `folder/<step>/{state,meta,hashes.json}`, written in the background and renamed into place when all
of it is there, so a killed save leaves the steps before it as they were. Reading changes nothing on disk; the first
save of a process clears what killed saves left and moves aside the damaged steps that `restore` passed over.
"""

import contextlib
import json
import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp
from orbax.checkpoint.checkpoint_managers import AnyPreservationPolicy, EveryNSteps, LatestN

from data.errors import UserError
from data.room import no_room
from train import hosts
from train.hashes import fault, write_hashes

# Orbax reports through absl what it also raises, and much else that no user can act on.
logging.getLogger('absl').addFilter(lambda record: 'orbax' not in record.pathname)
ITEMS = ('state', 'meta')
"""Of a step."""


class Checkpoints:
    """The checkpoints of one run in one folder. A context manager that waits for the last save."""

    def __init__(self, folder: str | Path, keep: int = 2, log: Callable[[str], Any] = print, keep_every: int = 0):
        """Opens a folder, which need not exist.

        Args:
          folder: where the steps lie.
          keep: so many newest steps are kept, the others deleted once a newer one is complete.
          log: called with a line for the user when a step had to be passed over.
          keep_every: the steps that this divides are kept for good (0: none).
        """
        self._folder = Path(folder).resolve()
        self._keep = keep
        self._keep_every = keep_every
        self._log = log
        self._saving: int | None = None
        """The step of the last save, until that is known to be complete."""
        self._incomplete: list[int] = []
        self._manager: ocp.CheckpointManager | None = None

    def save(self, step: int, state: Any, meta: dict[str, Any]) -> None:
        """Saves a step in the background; the state's buffers may be donated as soon as this returns.

        A step that was saved before is left as it is. Waits for the save before this one where that is still running.

        Args:
          step: updates done.
          state: pytree of jax arrays.
          meta: what belongs to the state, as JSON can hold it.

        Raises:
          RuntimeError: a newer step is there already, which this run cannot have gone on from.
          UserError: there is no room for this step, or there was none for the one before it.
        """
        meta = json.loads(json.dumps(meta))  # Now, not in the background: an error shows here, a later change does not.
        self.wait()
        with self._with_room():
            manager = self._open()
            if manager.latest_step() == step:
                return
            self._saving = step
            with hosts.together(
                self._no_room('another host has too little room or cannot see this folder: its own error says which')
            ):
                self._check_room(state)
            args = ocp.args.Composite(state=ocp.args.StandardSave(state), meta=ocp.args.JsonSave(meta))
            if not manager.save(step, args=args):
                raise RuntimeError(f'{self._folder}: step {step} is not after the newest one, {manager.latest_step()}')

    def restore(self, abstract_state: Any, only: int | None = None) -> tuple[int, Any, dict[str, Any]] | None:
        """Reads the newest step whose files are as they were saved; says so through `log` where newer ones are not.

        Args:
          abstract_state: pytree of jax.ShapeDtypeStruct. Its shardings are the restored arrays' (that of a leaf
            without one: the first device), whatever mesh they were saved from.
          only: read this step or none.

        Returns:
          (step, state, meta), or None where no step is complete.

        Raises:
          UserError: a leaf is missing, unknown, or of another shape or dtype. (Orbax would cast it and say nothing.)
        """
        self._incomplete = []
        wanted = [step for step in self.steps() if only in (None, step)]
        for step in reversed(wanted):
            try:
                with hosts.together(_Incomplete('another host cannot read it')):
                    stored, meta = self._describe(step)
                _check(self._folder / str(step), stored, abstract_state)
                with hosts.together(_Incomplete('another host cannot read it')):
                    state = self._read(step, abstract_state)
            except _Incomplete as reason:
                self._incomplete.append(step)
                self._log(f'Checkpoint {self._folder / str(step)} is damaged or incomplete and passed over: {reason}.')
                continue
            if self._incomplete:
                self._log(f'Going on from the checkpoint of step {step}.')
            return step, state, meta
        if self._incomplete:
            self._log(f'No checkpoint in {self._folder} is whole: starting anew.')
        return None

    def newest_meta(self) -> dict[str, Any] | None:
        """The meta of the newest step that has a readable one, without its arrays; None where there is none."""
        for step in reversed(self.steps()):
            try:
                return self._read_meta(step)
            except _Incomplete:
                continue
        return None

    def check(self) -> None:
        """Raises what `wait` would, without waiting: what a save that has ended since failed with."""
        if self._saving is not None and not self._manager.is_saving_in_progress():
            self.wait()

    def wait(self) -> None:
        """Waits until the last save is complete.

        Raises:
          UserError: there was no room for it.
        """
        if self._manager is not None:
            with self._with_room():
                self._manager.wait_until_finished()
            self._saving = None

    def close(self) -> None:
        """Waits for the last save and lets go of Orbax's threads. Raises as `wait`."""
        manager, self._manager = self._manager, None
        if manager is not None:
            with self._with_room():
                manager.close()

    def __enter__(self) -> 'Checkpoints':
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def steps(self) -> list[int]:
        """The steps that are on disk, complete or not, rising; to be called by all hosts."""
        return hosts.from_first(self._on_disk)

    def _on_disk(self) -> list[int]:
        if not self._folder.exists():
            return []
        names = [path.name for path in self._folder.iterdir() if path.is_dir()]
        return sorted(int(name) for name in names if name.isdecimal() and name == str(int(name)))

    def _describe(self, step: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """({leaf: its stored shape and dtype}, meta) of a step whose files are as they were saved."""
        folder = self._folder / str(step)
        meta = self._read_meta(step)
        # One host reads all of it, the others their parts.
        if hosts.is_first() and (reason := fault(folder, 'state')):
            raise _Incomplete(reason)
        with _unreadable('state'), _reader() as reader:
            metadata = reader.metadata(folder / 'state').item_metadata
        if metadata is None:
            raise _Incomplete('what its state holds cannot be read')
        return _leaves(metadata.tree), meta

    def _read_meta(self, step: int) -> dict[str, Any]:
        folder = self._folder / str(step)
        if reason := fault(folder, 'meta'):
            raise _Incomplete(reason)
        with _unreadable('meta'):
            return ocp.JsonCheckpointHandler().restore(folder / 'meta')

    def _read(self, step: int, abstract_state: Any) -> Any:
        first = jax.sharding.SingleDeviceSharding(jax.devices()[0])
        target = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding or first), abstract_state
        )
        with _unreadable('state'), _reader() as reader:
            return reader.restore(self._folder / str(step) / 'state', target)

    def _open(self) -> ocp.CheckpointManager:
        if self._manager is None:
            # Orbax takes any folder with a number for a complete step and saves no step that is not after it.
            for step in self._incomplete if hosts.is_first() else []:
                _move_aside(self._folder / str(step))
            hosts.wait()
            policies = [LatestN(self._keep), *([EveryNSteps(self._keep_every)] if self._keep_every else [])]
            options = ocp.CheckpointManagerOptions(
                preservation_policy=AnyPreservationPolicy(policies),
                cleanup_tmp_directories=True,
                async_options=ocp.AsyncOptions(post_finalization_callback=self._add_hashes),
            )
            self._manager = ocp.CheckpointManager(self._folder, options=options)
        return self._manager

    def _add_hashes(self) -> None:
        """Orbax calls it, in the background on process 0, when all files are written and before the step is renamed."""
        (unfinished,) = self._unfinished()
        write_hashes(unfinished, ITEMS)

    def _unfinished(self) -> list[Path]:
        """The folder of the step that is being saved, before it has its name."""
        return list(self._folder.glob(f'{self._saving}.orbax-checkpoint-tmp*'))

    @contextlib.contextmanager
    def _with_room(self) -> Iterator[None]:
        """Turns what a full disk raises in a save, here or in the background, into one line."""
        try:
            yield
        except Exception as error:
            if (reason := no_room(error)) is None:
                raise
            for folder in self._unfinished():  # it would keep room from what is to be saved next
                shutil.rmtree(folder, ignore_errors=True)
            raise self._no_room(reason) from None

    def _check_room(self, state: Any) -> None:
        """Refuses what cannot fit before Orbax begins: its threads run on after one has failed, and say much."""
        needed, free = sum(leaf.nbytes for leaf in jax.tree.leaves(state)), shutil.disk_usage(self._folder).free
        if needed > free:
            raise self._no_room(f'it takes {needed / 1e6:,.1f} MB, and {free / 1e6:,.1f} MB are free')

    def _no_room(self, reason: str) -> UserError:
        whole = [step for step in self._on_disk() if step != self._saving]  # one host may be alone here
        kept = f'the checkpoint of step {whole[-1]} is whole' if whole else 'there is no earlier one'
        return UserError(
            f'{self._folder}: the checkpoint of step {self._saving} could not be written ({reason}); {kept}: '
            'make room, then give the same command again'
        )


def _reader() -> ocp.StandardCheckpointer:
    """Reads this host's part, and waits for no other: one that finds a file broken does not come."""
    own = jax.process_index()
    options = ocp.options.MultiprocessingOptions(primary_host=own, active_processes={own})
    return ocp.StandardCheckpointer(multiprocessing_options=options)


class _Incomplete(Exception):
    """Why a step cannot be restored."""


@contextlib.contextmanager
def _unreadable(item: str) -> Iterator[None]:
    """Turns what a missing, truncated or garbled file raises into _Incomplete.

    Tensorstore's errors are ValueErrors; Orbax raises a bare Exception for an array. Anything else, such as too little
    memory, says nothing about the checkpoint and goes through.
    """
    try:
        yield
    except Exception as error:
        if type(error) is not Exception and not isinstance(error, (OSError, ValueError, KeyError)):
            raise
        reason = str(error.__cause__ or error).split('[tensorstore_spec')[0].strip().split('\n')[0]
        raise _Incomplete(f'{item} cannot be read ({reason[:300]})') from error


def _leaves(tree: Any) -> dict[str, Any]:
    """{'params.layers.kernel': leaf}: the same names for a state and for what Orbax tells of a stored one."""
    return {
        jax.tree_util.keystr(path, simple=True, separator='.'): leaf
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]
    }


def _check(folder: Path, stored: dict[str, Any], abstract_state: Any) -> None:
    wanted = _leaves(abstract_state)
    for name in sorted(wanted.keys() | stored.keys()):
        if name not in stored:
            found = f'lacks {name}'
        elif name not in wanted:
            found = f'holds {name}, which this run has not'
        elif tuple(stored[name].shape) != tuple(wanted[name].shape):
            found = f'holds {name} with shape {tuple(stored[name].shape)}, this run {tuple(wanted[name].shape)}'
        elif stored[name].dtype != wanted[name].dtype:
            found = f'holds {name} as {stored[name].dtype}, this run {wanted[name].dtype}'
        else:
            continue
        raise UserError(f'checkpoint {folder} {found}: give the config it was made with, or another --workdir')


def _move_aside(folder: Path) -> None:
    aside = folder.parent / f'{folder.name}.incomplete'
    number = 1
    while aside.exists():
        number += 1
        aside = folder.parent / f'{folder.name}.incomplete-{number}'
    folder.rename(aside)
