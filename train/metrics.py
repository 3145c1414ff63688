"""metrics.jsonl, the truth of a run, and TensorBoard files beside it.

One JSON object a line; 'kind' says what it is (train, figure, example, failed, run, finished, report; of fine-tunings
finetune, finetuned and task; of an ablation's downstream tasks task and evaluated). A number that is not finite is
written as null, since JSON has no other word for it. Losses are in nats a target, accuracies and tasks' scores in
percent, rates shares.

A 'train' record averages the `steps` updates up to its `step`; what it says of a second (cohort_tokens_per_second,
cohort_targets_per_second) and mfu are of all replicas of its cohort together.
"""

import contextlib
import io
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import UserError
from data.room import named
from train.tensorboard import TensorBoard

_IDENTITY = {
    'train': ('arm', 'seed', 'step'),
    'figure': ('arm', 'seed', 'stage', 'step', 'metric', 'eval_rate', 'task', 'ft_seed'),
    'example': ('arm', 'seed', 'rate', 'sentence'),
    'failed': ('arm', 'seed'),
    'task': ('task',),
    'finetune': ('task', 'arm', 'seed', 'ft_seed', 'point', 'step'),
    'finetuned': ('task', 'arm', 'seed', 'ft_seed', 'point'),
}


class Metrics:
    """Appends records to a workdir. A context manager."""

    def __init__(self, workdir: str | Path, tensorboard: bool = False):
        """Opens workdir/metrics.jsonl at its end, without a last line that a killed process left unfinished.

        Args:
          workdir: an existing folder.
          tensorboard: also write the numbers of 'train' and 'figure' records to workdir/tensorboard/<arm>-<seed>.
        """
        self._workdir = Path(workdir)
        self._path = self._workdir / 'metrics.jsonl'
        self._open()
        self._tensorboard = tensorboard
        self._writers: dict[tuple[str, int], TensorBoard] = {}
        self._restored: dict[tuple[str, int], int] = {}

    def write(self, *records: Mapping[str, Any]) -> None:
        """Appends records and hands them to the operating system, so that a killed process loses none of them.

        Values may be numpy or jax scalars and arrays; keys become strings.
        """
        plain = [_plain(record) for record in records]
        lines = b''.join(json.dumps(record, allow_nan=False).encode() + b'\n' for record in plain)
        with named(self._path):
            while lines:  # unbuffered: what a full disk has no room for is not tried again when the file is closed
                lines = lines[self._file.write(lines) :]
        for record in plain if self._tensorboard else ():
            self._show(record)

    def truncate_after(self, steps: Mapping[tuple[str, int], int], cohort: str) -> None:
        """Drops what replicas recorded after the step that they go on from; `steps` maps (arm, seed) to it.

        The file is replaced in one step. Records without a step of their own ('example') are dropped too: they come
        after the last one. So are those of what was done with the cohort once it was trained.
        """
        self._restored.update(steps)
        content = self._path.read_bytes()
        kept = []
        for line, record in _parsed(self._path, content):
            restored = steps.get((record.get('arm'), record.get('seed')))
            step = record.get('step')
            came_after = record['kind'] in ('finished', 'finetuned', 'evaluated') and record.get('cohort') == cohort
            if not came_after and (restored is None or (step is not None and step <= restored)):
                kept.append(line)
        if len(kept) == content.count(b'\n'):
            return
        part = self._path.with_suffix('.part')
        with open(part, 'wb') as file:
            file.write(b''.join(kept))
            file.flush()
            os.fsync(file.fileno())
        self._file.close()
        os.replace(part, self._path)
        self._open()

    def flush(self) -> None:
        """Closes metrics.jsonl and opens it again, and hands TensorBoard's buffers to the operating system.

        A mounted bucket (gcsfuse) takes over what was written when the file is closed: only then does it outlive the
        machine.
        """
        self._file.close()
        self._file = self._opened()
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        """Writes what is buffered and closes all files."""
        self._file.close()
        for writer in self._writers.values():
            writer.close()

    def __enter__(self) -> 'Metrics':
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: Any) -> None:
        with contextlib.suppress(*([OSError] if kind else [])):  # of a full disk one error is enough
            self.close()

    def _opened(self) -> io.FileIO:
        return open(self._path, 'ab', buffering=0)

    def _open(self) -> None:
        self._file = self._opened()
        content = self._path.read_bytes()
        self._file.truncate(content.rfind(b'\n') + 1)

    def _show(self, record: dict[str, Any]) -> None:
        replica = (record.get('arm'), record.get('seed'))
        step = record.get('step')
        if record['kind'] not in ('train', 'figure') or None in replica or step is None:
            return
        if replica not in self._writers:
            self._writers[replica] = self._tensorboard_writer(replica)
        self._writers[replica].write(dict(_scalars(record)), step)

    def _tensorboard_writer(self, replica: tuple[str, int]) -> TensorBoard:
        # What no file's name may hold on some system; never two names alike.
        name = re.sub(r'[/\\:*?"<>|~]', lambda found: f'~{ord(found[0]):02X}', '-'.join(map(str, replica)))
        return TensorBoard(self._workdir / 'tensorboard' / name, self._restored.pop(replica, None))


class NoMetrics(Metrics):
    """Writes nothing: of the processes of a run, one alone does."""

    def __init__(self):
        pass

    def write(self, *records: Mapping[str, Any]) -> None:
        """Does nothing."""

    def truncate_after(self, steps: Mapping[tuple[str, int], int], cohort: str) -> None:
        """Does nothing."""

    def flush(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


def read(workdir: str | Path) -> list[dict[str, Any]]:
    """The records of a workdir in the order written; of two for the same thing, the later one at the earlier's place.

    (An evaluation that was cut short is done again.) Of a replica's failures the first counts: it is noted again when
    the run is taken up. A last line that is not finished is left out. A workdir without metrics has none.

    Raises:
      UserError: a finished line is not JSON, or no record.
    """
    path = Path(workdir) / 'metrics.jsonl'
    records: dict[Any, dict[str, Any]] = {}
    for number, (_, record) in enumerate(_parsed(path, path.read_bytes() if path.exists() else b'')):
        fields = _IDENTITY.get(record['kind'])
        key = number if fields is None else (record['kind'], *(record.get(field) for field in fields))
        if record['kind'] != 'failed' or key not in records:
            records[key] = record
    return list(records.values())


def _parsed(path: Path, content: bytes) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """(line, record) of every finished line."""
    for number, line in enumerate(content[: content.rfind(b'\n') + 1].splitlines(keepends=True), 1):
        try:
            record = json.loads(line)
        except ValueError:
            raise UserError(f'{path}: line {number} is not JSON: take it out') from None
        if not isinstance(record, dict) or 'kind' not in record:
            raise UserError(f'{path}: line {number} is no record: take it out')
        yield line, record


def _scalars(record: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """(TensorBoard's name, value) of a record's numbers."""
    if record['kind'] == 'figure':
        parts = [record.get(field) for field in ('metric', 'eval_rate', 'task')]
        pairs = [('/'.join(str(part) for part in parts if part is not None), record.get('value'))]
    else:
        pairs = [(f'train/{name}', value) for name, value in record.items() if name not in ('arm', 'seed', 'step')]
    for name, value in pairs:
        if isinstance(value, (int, float)):
            yield name, float(value)


def _plain(value: Any) -> Any:
    """What JSON can hold: numpy and jax values as Python's, numbers that are not finite as None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (str, int, type(None))):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, 'dtype'):
        return _plain(np.asarray(value).tolist())
    raise TypeError(f'a record cannot hold {value!r}')
