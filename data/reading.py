"""Text files as lines: compression, encodings, byte order marks, line ends."""

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from data.errors import UserError
from data.files import open_binary
from data.pieces import Span
from data.tally import Tally

_CHUNK = 1 << 20
# ISO-2022 (JIS mail and old pages) is plain ASCII byte by byte, so that it would pass as UTF-8 and train on noise.
_ISO_2022 = re.compile(r'\x1b\$[@B)]')
# So would UTF-16 without a byte order mark, as text with every second letter a control character.
_CONTROLS = re.compile('[\x00-\x08\x0e-\x1f\x7f-\x9f]')


def lines(span: Span, encoding: str, tally: Tally) -> Iterator[str]:
    """Lines of a span without their ends (LF, CRLF or CR, and nothing else), read bit by bit.

    A last character cut off by the file's end is left out and counted.

    Raises:
      UserError: the file cannot be opened, decompressed or decoded.
    """
    pending: list[str] = []
    for text in _texts(span, encoding, tally):
        first, *rest = text.split('\n')
        pending.append(first)
        if rest:
            yield ''.join(pending)
            yield from rest[:-1]
            pending = [rest[-1]]
    if last := ''.join(pending):
        yield last


def _texts(span: Span, encoding: str, tally: Tally) -> Iterator[str]:
    path, decoder = span.path, _decoder(encoding)
    newlines = io.IncrementalNewlineDecoder(decoder, translate=True)
    for at, chunk in _chunks(span):
        try:
            text = newlines.decode(chunk)
        except UnicodeError as error:
            raise UserError(_undecodable(path, encoding, error, at + len(chunk))) from None
        if encoding.lower().replace('_', '-') in ('utf-8', 'utf8') and _ISO_2022.search(text):
            raise UserError(f'{path}: holds ISO-2022 escapes and is not {encoding}: try --encoding iso2022_jp')
        if not at:
            text = text.removeprefix('\ufeff')
            if len(_CONTROLS.findall(text)) > len(text) / 10:
                raise UserError(f'{path}: control characters all over, so not text in {encoding}: see --encoding')
        yield text
    try:
        yield newlines.decode(b'', final=True)
    except UnicodeError:
        tally.mended['files cut off inside a character'] += 1


def chunks(path: str | Path) -> Iterator[bytes]:
    """The bytes of a file, uncompressed if its name ends in .gz.

    Raises:
      UserError: it cannot be opened or decompressed.
    """
    for _, chunk in _chunks(Span(str(path))):
        yield chunk


def _chunks(span: Span) -> Iterator[tuple[int, bytes]]:
    """(place in the file, bytes), bit by bit."""
    path = span.path
    try:
        with open_binary(path) as raw, gzip.open(raw, 'rb') if path.endswith('.gz') else raw as file:
            at = 0
            if span.start:  # the line that begins here is ours, one that goes on here is not
                file.seek(span.start - 1)
                at = span.start - 1 + len(file.readline())
            while (span.end is None or at < span.end) and (chunk := file.read(_CHUNK)):
                if span.end is not None and at + len(chunk) >= span.end:
                    end = chunk.find(b'\n', span.end - 1 - at) + 1
                    chunk = chunk[:end] if end else chunk + file.readline()
                    yield at, chunk
                    return
                yield at, chunk
                at += len(chunk)
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


def _undecodable(path: str, encoding: str, error: UnicodeError, read: int) -> str:
    where = ''
    if isinstance(error, UnicodeDecodeError):
        where = f' at byte {read - len(error.object) + error.start:,}'
        start = error.object[:2] if read <= _CHUNK else b''
        if start in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return f'{path}: not {encoding}, but it begins with a UTF-16 byte order mark: try --encoding utf-16'
    return f'{path}: not {encoding}{where}: say what it is with --encoding, or leave the file out'
