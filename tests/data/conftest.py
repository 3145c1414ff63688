"""A small corpus and its store, made once."""

import pytest

from data.prepare import prepare
from tests.data.corpora import quiet, small_config, speeches, write_jsonl


@pytest.fixture(scope='session')
def corpus(tmp_path_factory):
    """16 speeches, and four lines that are to be dropped: two empty ones, a copy, one without a text."""
    records = [{'text': text, 'label': f'half {number // 8}'} for number, text in enumerate(speeches(16))]
    records[3:3] = [{'text': '  '}, {'text': records[0]['text'].replace(' ', '  ')}, {'no text': 1}, {'text': '\u200b'}]
    return write_jsonl(tmp_path_factory.mktemp('corpus') / 'speeches.jsonl', records)


@pytest.fixture(scope='session')
def store(corpus, tmp_path_factory):
    return prepare(small_config(corpus), tmp_path_factory.mktemp('stores') / 'store', log=quiet)
