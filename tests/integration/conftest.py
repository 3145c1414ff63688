"""One prepared corpus and one finished ablation for all tests of commands. Tests change copies of them alone."""

import shutil
import sys
from importlib import import_module

import jax
import pytest

from data.config import DataConfig
from data.prepare import prepare
from experiments import cli
from tests.data.corpora import quiet, speeches, write_jsonl
from tests.integration.commands import TINY, Place, contents, one_line


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


@pytest.fixture(scope='session')
def other_tokenizer(tmp_path_factory):
    """The file of a tokenizer like that of `place`'s store, of other text."""
    folder = tmp_path_factory.mktemp('other')
    write_jsonl(folder / 'corpus.jsonl', [text[2000:4000] for text in speeches(40)])
    config = DataConfig(corpus=f'files:{folder / "corpus.jsonl"}', vocab_size=384)
    prepare(config, folder / 'store', log=quiet)
    return folder / 'store' / 'tokenizer.model'


@pytest.fixture
def copied(place, finished):
    """Copies the finished workdir under another name."""

    def copy(name: str):
        return shutil.copytree(finished[0], place.folder / name)

    return copy


@pytest.fixture
def here(place, monkeypatch, tmp_path):
    """A working directory of the test's own, with the config, the corpus and its store."""
    for name in ('tiny.py', 'corpus.jsonl'):
        shutil.copy(place.folder / name, tmp_path)
    shutil.copytree(place.folder / 'store', tmp_path / 'store')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(here, monkeypatch, capfd):
    """Runs a command in this process, which must refuse it and leave all files as they are; what it says."""
    jax.devices()  # before a command says how many it wants
    for name in ('XLA_FLAGS', 'TF_CPP_MIN_LOG_LEVEL'):
        monkeypatch.setenv(name, '')  # put back afterwards, whatever a command sets

    def refuse(command: str, *words, prepared: bool = True) -> str:
        if command in ('ablate', 'pretrain') and prepared:
            words = [*words, '--data.corpus', 'files:corpus.jsonl', '--data.store', 'store']
            words += ['--run.compilation-cache', '']
        monkeypatch.setattr(sys, 'argv', [f'{command}.py', *map(str, words)])
        before, paths = contents(here), set(here.rglob('*'))
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            cli.run(import_module(f'experiments.{command}').main)
        assert stop.value.code == 2
        assert set(here.rglob('*')) == paths and contents(here) == before
        return one_line(capfd.readouterr().err)

    return refuse
