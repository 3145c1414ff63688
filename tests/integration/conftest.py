"""One prepared corpus and one finished ablation for all tests of commands. Tests change copies of them alone."""

import shutil

import pytest

from tests.data.corpora import speeches, write_jsonl
from tests.integration.commands import TINY, Place


@pytest.fixture(scope='session')
def place(tmp_path_factory) -> Place:
    """A working directory in which `experiments.prepare` has made the store."""
    place = Place(tmp_path_factory.mktemp('commands'))
    (place.folder / 'tiny.py').write_text(TINY)
    texts = [text[:2000] for text in speeches(40)]
    write_jsonl(
        place.folder / 'corpus.jsonl', [{'text': text, 'label': f'{number % 2}'} for number, text in enumerate(texts)]
    )
    options = ['--corpus', 'files:corpus.jsonl', '--vocab_size', '384', '--heldout_percent', '25']
    place.run('prepare', *options, '--out', 'store')
    return place


@pytest.fixture(scope='session')
def finished(place):
    """Workdir `finished` of tiny.py with seed 0, and what the command printed."""
    return place.folder / 'finished', place.ablate('tiny.py', 'finished').stdout


@pytest.fixture
def copied(place, finished):
    """Copies the finished workdir under another name."""

    def copy(name: str):
        return shutil.copytree(finished[0], place.folder / name)

    return copy
