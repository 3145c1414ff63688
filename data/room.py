"""A full disk: how it is known, and in which file."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""A full disk, a quota, a limit to the size of files."""


def no_room(error: BaseException | None) -> str | None:
    """What the operating system said of a full disk, in an error or in what it came of; None: it was not that.

    Libraries pass on its words alone, or an error of theirs that was raised from its own.
    """
    while error is not None:
        for number in NO_ROOM:
            if getattr(error, 'errno', None) == number or os.strerror(number) in str(error):
                return os.strerror(number)
        error = error.__cause__ or error.__context__
    return None


@contextlib.contextmanager
def named(path: str | Path) -> Iterator[None]:
    """Adds the file's name to an error of the operating system, which does not know it when it writes."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
