"""Third step: the chunks' arrays, joined in the corpus's order, into shards."""

import hashlib
import json
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from data import shards
from data.files import SCRATCH, Files
from data.preparing.tokenizing import SPLITS, TokenizeTask
from data.store import DTYPES, OFFSETS, PARTS


@dataclass(frozen=True)
class Source:
    """Elements [start, stop) of an array of one chunk."""

    name: str
    start: int
    stop: int
    before: int
    """Tokens in the chunks before it."""
    first: bool
    """Whether the chunk is the first, before whose offsets stands a 0."""


@dataclass(frozen=True)
class ShardTask:
    """A shard to write."""

    files: Files
    split: str
    part: str
    number: int
    dtype: str
    sources: tuple[Source, ...]

    @property
    def name(self) -> str:
        return shards.shard_name(f'{self.split}.{self.part}', self.number)

    @property
    def done(self) -> str:
        """The file that is written last."""
        return f'{SCRATCH}/shards/{self.name}.json'

    @property
    def size(self) -> int:
        """About how many bytes it has to do with."""
        return sum(source.stop - source.start for source in self.sources) * np.dtype(self.dtype).itemsize


def shard_tasks(files: Files, chunks: list[TokenizeTask], counts: list[dict], tokens: str) -> list[ShardTask]:
    """Which elements of which chunks make each shard.

    Args:
      counts: of each chunk, what `tokenize_chunk` says of it.
      tokens: dtype of the tokens.
    """
    tasks = []
    for split in SPLITS:
        before = [0, *accumulate(count['lengths'][f'{split}.tokens'] for count in counts)]
        for part in PARTS:
            dtype = tokens if part == 'tokens' else DTYPES[part]
            room = size = shards.SHARD_BYTES // np.dtype(dtype).itemsize
            made: list[list[Source]] = [[]]
            for chunk, count, tokens_before in zip(chunks, counts, before, strict=False):
                first = chunk.number == 0 and part in OFFSETS
                start, length = 0, count['lengths'][f'{split}.{part}'] + first
                while start < length:
                    if not room:
                        made.append([])
                        room = size
                    stop = min(length, start + room)
                    made[-1].append(Source(chunk.name, start, stop, tokens_before, first))
                    room -= stop - start
                    start = stop
            tasks += [ShardTask(files, split, part, n, dtype, tuple(found)) for n, found in enumerate(made)]
    return tasks


def write_shard(task: ShardTask) -> None:
    """Writes a shard and notes its size and its hash."""
    digest, size = hashlib.sha256(), 0
    with task.files.create(task.name) as file:
        for source in task.sources:
            content = _elements(task, source)[source.start : source.stop].astype(task.dtype).tobytes()
            file.write(content)
            digest.update(content)
            size += len(content)
    found = {'file': task.name, 'bytes': size, 'sha256': digest.hexdigest()}
    task.files.write(task.done, json.dumps(found).encode())


def _elements(task: ShardTask, source: Source) -> np.ndarray:
    with task.files.open(source.name) as file, np.load(file) as arrays:
        array = arrays[f'{task.split}.{task.part}']
    if task.part in OFFSETS:  # lengths there
        array = source.before + np.cumsum(array)
    return np.concatenate([[0], array]) if source.first else array
