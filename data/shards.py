"""Flat arrays in files of at most a gibibyte, which lie side by side in memory when they are read."""

import ctypes
import hashlib
import mmap
import os
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from data.errors import UserError

SHARD_BYTES = 1 << 30
"""Size of every shard but an array's last. A multiple of any page size."""
_MAP_FIXED = 0x10
_CHUNK = 1 << 22


def shard_name(array: str, number: int) -> str:
    """train.tokens-00000.bin."""
    return f'{array}-{number:05d}.bin'


def open_array(folder: Path, shards: Sequence[dict], dtype: str) -> np.ndarray:
    """The array that the shards hold, read from disk where it is looked at.

    Args:
      shards: of each its `file` and its `bytes`.

    Raises:
      OSError: a file is missing.
      ValueError: a file has another size.
    """
    sizes = [shard['bytes'] for shard in shards]
    memory = _Reserved(sum(sizes))
    start = 0
    for shard, size in zip(shards, sizes, strict=True):
        with open(folder / shard['file'], 'rb') as file:
            if os.fstat(file.fileno()).st_size != size:
                raise ValueError(f'{shard["file"]} has {os.fstat(file.fileno()).st_size:,} bytes, not {size:,}')
            memory.place(file.fileno(), start, size)
        start += size
    array = np.frombuffer(memory.bytes, dtype)
    array.flags.writeable = False
    return array


def check(folder: Path, shards: Sequence[dict]) -> None:
    """Reads all shards and compares them with their hashes.

    Raises:
      UserError: one is damaged.
    """
    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        found = pool.map(lambda shard: _sha256(folder / shard['file']), shards)
        for shard, digest in zip(shards, found, strict=True):
            if digest != shard['sha256']:
                raise UserError(
                    f'{folder}/{shard["file"]} is damaged: its sha256 is {digest}, not {shard["sha256"]}; '
                    'copy it again, or prepare the store again with experiments.prepare --overwrite'
                )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, 'rb', buffering=0) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


class _Reserved:
    """Addresses in one stretch, into which files are mapped one after another.

    Python's own mmap cannot say where a file is to be. Rows are cut across shards by index arithmetic over the whole
    array, which so needs to know nothing of shards.
    """

    def __init__(self, size: int):
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        offset = ctypes.c_long
        self._libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *3 * [ctypes.c_int], offset]
        self._libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self._start = self._map(None, size, 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1)
        self.bytes = (ctypes.c_uint8 * size).from_address(self._start)
        """All of them. Arrays over it keep it, and the mapping lasts as long as it."""
        weakref.finalize(self.bytes, self._libc.munmap, self._start, size)

    def place(self, file: int, start: int, size: int) -> None:
        """Maps a whole file to begin at `start`, a multiple of the page size."""
        self._map(self._start + start, size, mmap.PROT_READ, mmap.MAP_PRIVATE | _MAP_FIXED, file)

    def _map(self, address: int | None, size: int, protection: int, flags: int, file: int) -> int:
        found = self._libc.mmap(address, size, protection, flags, file, 0)
        if found == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return found
