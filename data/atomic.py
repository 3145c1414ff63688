"""Folders that are there whole or not at all."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from data.errors import Unfinished, UserError


@contextlib.contextmanager
def partial_folder(
    out: Path, log: Callable[[str], None], goes_on: Callable[[Path], bool] = lambda folder: False
) -> Iterator[Path]:
    """A folder beside `out` to build in, for one process at a time; then `publish` it.

    Another process that asks for the same `out` waits here. The lock goes with its process. What a killed one has left,
    or one whose disk was full, is cleared by the next, unless `goes_on` says that it can be made use of. A user's
    mistake leaves nothing.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = out.with_name(f'.{out.name}.partial')
    folder = _locked(partial, log)
    try:
        if not goes_on(partial):
            _clear(partial)
        yield partial
    except UserError as error:
        if not isinstance(error, Unfinished):
            shutil.rmtree(partial, ignore_errors=True)
        raise
    finally:
        if _same(folder, partial) and not any(partial.iterdir()):  # it was not needed
            partial.rmdir()
        os.close(folder)


def publish(partial: Path, out: Path) -> None:
    """Puts a finished folder in its place, instead of the one that may be there."""
    replaced = out.with_name(f'.{out.name}.replaced')
    if replaced.exists():
        shutil.rmtree(replaced)
    if out.exists():
        os.rename(out, replaced)
    os.rename(partial, out)
    shutil.rmtree(replaced, ignore_errors=True)


def _locked(path: Path, log: Callable[[str], None]) -> int:
    """Makes the folder and locks it; its file descriptor."""
    while True:
        path.mkdir(exist_ok=True)
        try:
            folder = os.open(path, os.O_RDONLY)
        except FileNotFoundError:  # published or removed since by the process that held it
            continue
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log(f'waiting for the process that prepares {path}')
            fcntl.flock(folder, fcntl.LOCK_EX)
        if _same(folder, path):
            return folder
        os.close(folder)


def _same(folder: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(folder), os.stat(path))
    except FileNotFoundError:
        return False


def _clear(path: Path) -> None:
    for entry in path.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
