"""The one exception that means: the user can mend this."""

import contextlib
import dataclasses
import re
from collections.abc import Iterator


class UserError(Exception):
    """A user's mistake, as one line that names the flag or the file and the mend.

    Commands print it without a traceback and exit with code 2 (`experiments/cli.py`).
    """


class Unfinished(UserError):
    """It goes on from what is there already, which must not be cleared away."""


@contextlib.contextmanager
def flags_below(section: str, kind: type) -> Iterator[None]:
    """Makes `--FIELD` of a config dataclass in errors `--SECTION.FIELD`, as it is called where it is a part of a run.

    A command that prepares data takes the fields themselves as flags, and what is raised below it names those.
    """
    try:
        yield
    except UserError as error:
        fields = '|'.join(field.name for field in dataclasses.fields(kind))
        raise UserError(re.sub(rf'--({fields})\b', rf'--{section}.\1', str(error))) from None
