"""Text files as lines: compression, encodings, byte order marks, line ends."""

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from data.errors import UserError
from data.tally import Tally

_CHUNK = 1 << 20
# ISO-2022 (JIS mail and old pages) is plain ASCII byte by byte, so that it would pass as UTF-8 and train on noise.
_ISO_2022 = re.compile(r'\x1b\$[@B)]')
# So would UTF-16 without a byte order mark, as text with every second letter a control character.
_CONTROLS = re.compile('[\x00-\x08\x0e-\x1f\x7f-\x9f]')


def lines(path: Path, encoding: str, tally: Tally) -> Iterator[str]:
    """Lines of a file without their ends (LF, CRLF or CR, and nothing else), read piece by piece.

    A last character cut off by the file's end is left out and counted.

    Raises:
      UserError: the file cannot be opened, decompressed or decoded.
    """
    pending: list[str] = []
    for text in _texts(path, encoding, tally):
        first, *rest = text.split('\n')
        pending.append(first)
        if rest:
            yield ''.join(pending)
            yield from rest[:-1]
            pending = [rest[-1]]
    if last := ''.join(pending):
        yield last


def _texts(path: Path, encoding: str, tally: Tally) -> Iterator[str]:
    decoder = _decoder(encoding)
    newlines = io.IncrementalNewlineDecoder(decoder, translate=True)
    done = 0
    for chunk in chunks(path):
        try:
            text = newlines.decode(chunk)
        except UnicodeError as error:
            raise UserError(_undecodable(path, encoding, error, done + len(chunk))) from None
        if encoding.lower().replace('_', '-') in ('utf-8', 'utf8') and _ISO_2022.search(text):
            raise UserError(f'{path}: holds ISO-2022 escapes and is not {encoding}: try --encoding iso2022_jp')
        if not done:
            text = text.removeprefix('\ufeff')
            if len(_CONTROLS.findall(text)) > len(text) / 10:
                raise UserError(f'{path}: control characters all over, so not text in {encoding}: see --encoding')
        done += len(chunk)
        yield text
    try:
        yield newlines.decode(b'', final=True)
    except UnicodeError:
        tally.mended['files cut off inside a character'] += 1


def chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, uncompressed if its name ends in .gz.

    Raises:
      UserError: it cannot be opened or decompressed.
    """
    opener = gzip.open if path.suffix == '.gz' else open
    try:
        with opener(path, 'rb') as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise UserError(f'{path}: not a whole gzip file ({error})') from None
    except OSError as error:
        raise UserError(f'{path}: cannot be read ({error.strerror or error})') from None


def _decoder(encoding: str) -> codecs.IncrementalDecoder:
    try:
        'a'.encode(encoding)  # refuses codecs that are not text encodings, such as base64
        return codecs.getincrementaldecoder(encoding)('strict')
    except (LookupError, UnicodeError, ValueError):
        raise UserError(f'--encoding {encoding}: Python knows no such text encoding') from None


def _undecodable(path: Path, encoding: str, error: UnicodeError, read: int) -> str:
    where = ''
    if isinstance(error, UnicodeDecodeError):
        where = f' at byte {read - len(error.object) + error.start:,}'
        start = error.object[:2] if read <= _CHUNK else b''
        if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return f'{path}: not {encoding}, but it begins with a UTF-16 byte order mark: try --encoding utf-16'
    return f'{path}: not {encoding}{where}: say what it is with --encoding, or leave the file out'
