"""Every file of a folder of inputs that break loaders prepares with counts, or is refused in one line."""

from pathlib import Path

import pytest

from data.errors import UserError
from data.prepare import prepare
from tests.data.corpora import quiet, small_config

ODD = Path(__file__).resolve().parents[3] / 'shared' / 'data' / 'odd'

pytestmark = pytest.mark.peers

PREPARED = {
    'blns.txt': 'read 1 file, 78 documents; dropped none',
    'bom_crlf.txt': 'read 1 file, 40 documents; dropped none; kept',
    'duplicates.jsonl.gz': 'read 1 file, 240 lines, 240 documents; dropped 90 (duplicates 90); kept',
    'messy.jsonl': 'dropped 14 (blank lines 2, empty documents 3, lines that are not JSON 3, lines without a text 6)',
    'udhr.jsonl.gz': 'read 1 file, 388 lines, 388 documents; dropped 1 (empty documents 1)',
}
REFUSED = {
    'blns.LICENSE': 'files of this kind are not read',
    'blns.json': 'files of this kind are not read',
    'empty.txt': 'no document with text',
    'mediawiki-dump.xml.bz2': 'files of this kind are not read',
    'one_long_line.txt': 'one document with text',
    'only_bom.txt': 'no document with text',
    'only_newlines.txt': 'no document with text',
    'only_spaces.txt': 'no document with text',
    'utf16le_bom.txt': 'try --encoding utf-16',
}
ENCODINGS = {
    'Chinese_Mandarin-GB2312': 'gb2312',
    'French_Francais-Latin1': 'latin-1',
    'Greek_Ellinika-Greek': 'iso8859_7',
    'Hebrew_Ivrit-Hebrew': 'iso8859_8',
    'Hindi-UTF8': 'utf-8',
    'Japanese_Nihongo-EUC': 'euc_jp',
    'Japanese_Nihongo-JIS': 'iso2022_jp',
    'Korean_Hankuko-UTF8': 'utf-8',
    'Polish-Latin2': 'cp1250',
    'Russian-Cyrillic': 'cp1251',
    'Turkish_Turkce-Turkish': 'iso8859_9',
}


def outcome(path, out, **changes):
    """The summary line, or the error's."""
    lines = []
    try:
        prepare(small_config(path, vocab_size=600, **changes), out, log=lines.append)
    except UserError as error:
        lines = [f'error: {error}']
        assert not out.exists() and not any(out.parent.glob('.*'))
    assert '\n' not in lines[-1]
    return lines[-1]


def test_the_folder_holds_these_files():
    assert {path.name for path in ODD.iterdir() if path.is_file()} == {*PREPARED, *REFUSED}
    assert {path.name for path in (ODD / 'encodings').iterdir()} == set(ENCODINGS)


@pytest.mark.parametrize('name', PREPARED)
def test_prepared_with_counts(name, tmp_path):
    assert PREPARED[name] in outcome(ODD / name, tmp_path / 'store')


@pytest.mark.parametrize('name', REFUSED)
def test_refused_in_one_line(name, tmp_path):
    line = outcome(ODD / name, tmp_path / 'store')
    assert line.startswith('error: ') and REFUSED[name] in line


@pytest.mark.parametrize('name', ENCODINGS)
def test_other_encodings_are_refused_until_they_are_named(name, tmp_path):
    path = ODD / 'encodings' / name
    if ENCODINGS[name] != 'utf-8':
        line = outcome(path, tmp_path / 'unnamed')
        assert line.startswith(f'error: {path}: ') and '--encoding' in line
    line = outcome(path, tmp_path / 'store', encoding=ENCODINGS[name])
    assert 'read 1 file' in line and 'kept' in line or 'one document with text' in line


def test_the_same_articles_in_two_encodings_make_the_same_tokens(tmp_path):
    stores = [
        prepare(small_config(ODD / name, encoding=encoding), tmp_path / name, log=quiet)
        for name, encoding in (('bom_crlf.txt', 'utf-8'), ('utf16le_bom.txt', 'utf-16'))
    ]
    assert stores[0].manifest['splits'] == stores[1].manifest['splits']
    assert stores[0].manifest['text'] == stores[1].manifest['text']


def test_the_whole_folder_at_once_is_refused_by_the_first_file_that_is_not_text(tmp_path):
    assert 'files of this kind are not read' in outcome(ODD / '*', tmp_path / 'store')
