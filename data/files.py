"""Files below one root that are there whole or not at all: on a disk, or wherever Apache Beam reaches (gs://)."""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from data.errors import UserError

SCRATCH = 'work'
"""Folder below the root for what is not to stay."""


def is_remote(path: str) -> bool:
    """Whether a path is one for Beam's file systems: SCHEME://..."""
    return '://' in path


def beam_files():
    """Beam's file systems.

    Raises:
      UserError: Beam is not installed.
    """
    try:
        from apache_beam.io.filesystems import FileSystems
    except ImportError:
        raise UserError(
            'gs:// paths and --runner need Apache Beam: pip install -r requirements-beam.txt, in an environment of its '
            'own (docs/preparation.md)'
        ) from None
    return FileSystems


def open_binary(path: str) -> IO[bytes]:
    """A file to read from, as it is: nothing is decompressed."""
    if not is_remote(path):
        return open(path, 'rb')
    from apache_beam.io.filesystem import CompressionTypes

    return beam_files().open(path, compression_type=CompressionTypes.UNCOMPRESSED)


@dataclass(frozen=True)
class Files:
    """Names below a root. It travels to workers with their tasks."""

    root: str

    def path(self, name: str) -> str:
        """Where a name is."""
        return f'{self.root.rstrip("/")}/{name}'

    def exists(self, name: str) -> bool:
        path = self.path(name)
        return beam_files().exists(path) if is_remote(path) else os.path.exists(path)

    def open(self, name: str) -> IO[bytes]:
        """A file to read from, at any place."""
        return open_binary(self.path(name))

    def read(self, name: str) -> bytes:
        with self.open(name) as file:
            return file.read()

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """A file to write into, which gets its name when it is closed; without it if the block raises."""
        path, scratch = self.path(name), self.path(f'{SCRATCH}/unfinished/{uuid.uuid4().hex}')
        if is_remote(path):
            from apache_beam.io.filesystem import CompressionTypes

            with beam_files().create(scratch, compression_type=CompressionTypes.UNCOMPRESSED) as file:
                yield file
            if beam_files().exists(path):  # a task that was run twice; what it writes is the same
                beam_files().delete([path])
            beam_files().rename([scratch], [path])
            return
        for target in (path, scratch):
            os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(scratch, 'wb') as file:
            yield file
        os.replace(scratch, path)

    def write(self, name: str, content: bytes) -> None:
        with self.create(name) as file:
            file.write(content)

    def remove_scratch(self) -> None:
        """Removes the folder for what is not to stay."""
        path = self.path(SCRATCH)
        if not is_remote(path):
            shutil.rmtree(Path(path), ignore_errors=True)
        elif left := [found.path for found in beam_files().match([f'{path}/**'])[0].metadata_list]:
            beam_files().delete(left)
