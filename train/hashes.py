"""Hashes of a checkpoint's files, saved inside its step: Orbax itself sees few of the bits that flip in an array."""

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

NAME = 'hashes.json'


def write_hashes(step: Path, items: tuple[str, ...]) -> None:
    """Hashes all files of some items of a step and writes the hashes beside them."""
    files = [path for item in items for path in sorted((step / item).rglob('*')) if path.is_file()]
    with ThreadPoolExecutor(_threads()) as pool:
        digests = pool.map(_sha256, files)
    named = {path.relative_to(step).as_posix(): digest for path, digest in zip(files, digests, strict=True)}
    (step / NAME).write_text(json.dumps(named, indent=1) + '\n')


def fault(step: Path, item: str) -> str | None:
    """What is wrong with the files of an item, by the hashes that were saved with them; None: nothing.

    The first fault is named, with its file. A file that cannot be read is one.
    """
    if not (step / item).is_dir():
        return f'{item} is missing'
    try:
        hashes = json.loads((step / NAME).read_text())
        named = {name: digest for name, digest in hashes.items() if name.startswith(f'{item}/')}
        with ThreadPoolExecutor(_threads()) as pool:
            found = pool.map(_sha256, (step / name for name in named))
            for (name, digest), here in zip(named.items(), found, strict=True):
                if here != digest:
                    return f'{name} has sha256 {here}, not {digest}'
    except FileNotFoundError as error:
        return f'{Path(error.filename).relative_to(step)} is missing'
    except (OSError, ValueError, AttributeError) as error:
        name = Path(error.filename).relative_to(step) if getattr(error, 'filename', None) else NAME
        return f'{name} cannot be read ({str(error)[:200]})'
    return None if named else f'{NAME} names no file of {item}'


def _sha256(path: Path) -> str:
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest()


def _threads() -> int:
    return min(16, os.cpu_count() or 1)
