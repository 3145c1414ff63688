"""The working tree as one file: what git tracks and what it does not ignore, changes included."""

import subprocess
import tarfile
from pathlib import Path

from data.errors import UserError


def pack(root: Path, archive: Path) -> None:
    """Writes a .tar.gz of the working tree at `root`.

    Raises:
      UserError: it is no git repository.
    """
    listed = subprocess.run(
        ['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], cwd=root, capture_output=True
    )
    if listed.returncode:
        reason = listed.stderr.decode(errors='replace').strip()
        raise UserError(f'{root} cannot be copied to the machines, git says: {reason}. Launch from a clone')
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_name(f'{archive.name}.partial')
    with tarfile.open(partial, 'w:gz') as tar:
        for name in sorted(filter(None, listed.stdout.split(b'\0'))):
            path = Path(root) / name.decode(errors='surrogateescape')
            if path.is_file() or path.is_symlink():  # not if deleted, nor another repository
                tar.add(path, arcname=path.relative_to(root), recursive=False)
    partial.replace(archive)
