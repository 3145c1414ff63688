"""The command line: flags through tyro, a user's mistake as one line with exit code 2."""

import contextlib
import difflib
import errno
import io
import os
import re
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import tyro

from data.errors import UserError
from data.room import NO_ROOM

T = TypeVar('T')
_ROOM = 'make room, then give the same command again'
_RIGHTS = 'make it writable, or name another folder'
_PATH = 'name another path'
_MENDS = {
    **dict.fromkeys(NO_ROOM, _ROOM),
    errno.EROFS: _RIGHTS,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    **dict.fromkeys((errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG), _PATH),
}

Flat = tyro.conf.arg(name='')
"""Marks a field whose own fields are flags without its name before them: `config: Annotated[Config, Flat]`."""


def run(main: Callable[[list[str]], Any]) -> None:
    """Runs a command. A UserError, a file that it cannot write or want of memory is a line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors='backslashreplace')  # of what a terminal has no letters for
    try:
        main(sys.argv[1:])
    except UserError as error:
        print(f'error: {" ".join(str(error).split())}', file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:  # the reader of a pipe has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except OSError as error:
        if error.errno not in _MENDS:
            raise
        where = f'{error.filename}: ' if error.filename else ''
        print(f'error: {where}{error.strerror}: {_MENDS[error.errno]}', file=sys.stderr)
        raise SystemExit(2) from None
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and 'RESOURCE_EXHAUSTED' not in str(error):  # how XLA says it
            raise
        said = ' '.join(str(error).splitlines()[:1])
        print(f'error: not enough memory: use a smaller model, or fewer rows at once. {said}', file=sys.stderr)
        raise SystemExit(2) from None


def parse(flags: type[T], args: list[str], default: T, prog: str, description: str = '') -> T:
    """Fills a dataclass of flags from the command line.

    Raises:
      UserError: an unknown flag, a wrong type or a value that the dataclass refuses.
    """
    errors = io.StringIO()
    before = os.environ.get('COLUMNS')
    if '--help' not in args and '-h' not in args:
        os.environ['COLUMNS'] = '1000'  # so that tyro wraps no error over two lines
    try:
        with contextlib.redirect_stderr(errors):
            return tyro.cli(
                flags, args=args, default=default, prog=prog, description=description,
                config=(tyro.conf.FlagConversionOff,),
            )  # fmt: skip
    except SystemExit as stop:
        if stop.code == 0:
            raise
        raise UserError(_one_line(errors.getvalue(), prog)) from None
    except ValueError as error:
        raise UserError(str(error)) from None
    finally:
        os.environ.pop('COLUMNS', None)
        if before is not None:
            os.environ['COLUMNS'] = before


def _one_line(box: str, prog: str) -> str:
    """The message in tyro's box, with that of its suggestions which is most like what was written."""
    # The box is drawn where the terminal takes UTF-8, else it is a rule of hyphens. Its first line is a title.
    lines = [line.strip('│╭╮╰╯─ ') for line in re.sub(r'\x1b\[[0-9;]*m', '', box).splitlines()]
    lines = [line for line in lines if line.strip('-')]
    message = lines[1] if len(lines) > 1 else 'the command line could not be read'
    if 'Perhaps you meant:' in lines:
        likely = [line for line in lines[lines.index('Perhaps you meant:') :] if line.startswith('--')]
        written = message.partition('--')[2].partition(',')[0]
        meant = max(likely, key=lambda line: difflib.SequenceMatcher(None, written, line.split()[0][2:]).ratio())
        message += f'. Perhaps you meant {meant}'
    return f'{message.rstrip(".")}. See {prog} --help'


def given_fields(args: list[str]) -> list[str]:
    """Dotted config fields named on a command line: `--masking.corruption-rate 0.3` -> masking.corruption_rate."""
    return [name for name in given_flags(args) if '.' in name and not _number(name)]


def given_flags(args: list[str]) -> list[str]:
    """Flags named on a command line: `--batch-size 16` -> batch_size."""
    names = (arg[2:].partition('=')[0].replace('-', '_') for arg in args if arg.startswith('--'))
    return list(dict.fromkeys(names))


def _number(text: str) -> bool:
    return text.replace('.', '').isdigit()
