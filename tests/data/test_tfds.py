"""tfds:NAME on a real TFDS data set, built here over local text and read without TensorFlow."""

import sys
import time

import pytest
import tensorflow_datasets as tfds

from data.corpus import documents
from data.errors import UserError
from data.prepare import prepare
from data.tally import Tally
from tests.data.corpora import quiet, small_config, speeches


class ClozeSpeeches(tfds.core.GeneratorBasedBuilder):
    """State of the Union messages with the half of the list that each is from."""

    VERSION = tfds.core.Version('1.0.0')

    def _info(self):
        halves = tfds.features.ClassLabel(names=['early', 'late'])
        features = tfds.features.FeaturesDict({'text': tfds.features.Text(), 'label': halves})
        return tfds.core.DatasetInfo(builder=self, features=features)

    def _split_generators(self, dl_manager):
        return {'train': self._generate_examples(0, 20), 'test': self._generate_examples(20, 24)}

    def _generate_examples(self, first, last):
        for number in range(first, last):
            late = number >= 10
            yield number, {'text': speeches(24)[number], 'label': -1 if first else int(late)}


class ClozePairs(tfds.core.GeneratorBasedBuilder):
    """Two text features and none called text."""

    VERSION = tfds.core.Version('1.0.0')

    def _info(self):
        features = {'question': tfds.features.Text(), 'answer': tfds.features.Text()}
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(features))

    def _split_generators(self, dl_manager):
        return {'train': iter([(0, {'question': 'Who?', 'answer': 'Nobody.'})])}

    def _generate_examples(self):
        """Examples are given above."""


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('tfds')
    for name in ('cloze_speeches', 'cloze_pairs'):
        tfds.builder(name, data_dir=folder, file_format='array_record').download_and_prepare()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('TFDS_DATA_DIR', str(folder))
        for builder in (ClozeSpeeches, ClozePairs):  # only what lies there is read
            patch.setattr(builder, 'download_and_prepare', None)
        yield folder


def test_documents_of_a_data_set_its_splits_and_its_versions(folder):
    tally = Tally()
    found = list(documents('tfds:cloze_speeches', tally=tally))
    assert sorted(document.text for document in found) == sorted(speeches(24)[:20])
    assert {document.text: document.label for document in found}[speeches(24)[3]] == 'early'
    assert [document.label for document in found].count('late') == 10
    assert tally.read == {'documents': 20}
    for spec, count in (
        ('tfds:cloze_speeches:test', 4),
        ('tfds:cloze_speeches:1.0.0:test', 4),
        ('tfds:cloze_speeches:1.0.0', 20),
        ('tfds:cloze_speeches:train[:25%]', 5),
        ('tfds:cloze_speeches:train+test', 24),
        (f'tfds:{folder}/cloze_speeches/1.0.0:test', 4),
    ):
        found = list(documents(spec))
        assert len(found) == count, spec
    assert {document.label for document in documents('tfds:cloze_speeches:test')} == {''}
    assert 'tensorflow' not in sys.modules


def test_a_store_of_a_data_set(folder, tmp_path):
    config = small_config('', corpus='tfds:cloze_speeches')
    store = prepare(config, tmp_path / 'store', log=quiet)
    assert store.manifest['counts']['read'] == {'documents': 20}
    assert (
        store.manifest['options']['corpus'] == 'tfds:cloze_speeches' and store.manifest['options']['encoding'] is None
    )
    assert set(store.train.labels) | set(store.heldout.labels) == {'early', 'late'}


@pytest.mark.parametrize(
    ('spec', 'message'),
    [
        ('tfds:cloze_nothing', 'Dataset cloze_nothing not found'),
        ('tfds:cloze_speeches:dev', "Unknown split 'dev'"),
        ('tfds:cloze_speeches:9.0.0', 'cannot be loaded at version 9.0.0'),
        ('tfds:cloze_pairs', 'has no feature "text"; its text features are answer, question'),
        ('tfds:', 'use tfds:NAME or tfds:NAME:SPLIT'),
    ],
)
def test_what_cannot_be_read_is_one_line(folder, spec, message):
    with pytest.raises(UserError, match=message) as error:
        list(documents(spec))
    assert '\n' not in str(error.value) and str(error.value).startswith(f'--corpus {spec}: ')


def test_a_data_set_that_needs_more_than_is_here_to_be_generated(folder, monkeypatch):
    def data_source(*_, **__):
        raise ModuleNotFoundError("No module named 'apache_beam'", name='apache_beam')

    monkeypatch.setattr(tfds, 'data_source', data_source)
    with pytest.raises(UserError, match="needs apache_beam: prepare it elsewhere with file_format='array_record'"):
        list(documents('tfds:wikipedia/20230601.en'))


class ClozeFarAway(tfds.core.GeneratorBasedBuilder):
    """A data set whose source is on a host that no network has."""

    VERSION = tfds.core.Version('1.0.0')

    def _info(self):
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict({'text': tfds.features.Text()}))

    def _split_generators(self, dl_manager):
        return {'train': self._generate_examples(dl_manager.download('http://source.invalid/text.gz'))}

    def _generate_examples(self, path):
        yield 0, {'text': path.read_text()}


def test_a_source_that_cannot_be_reached_is_said_soon(folder, monkeypatch):
    """Not after TFDS's ten tries, which take three and a half minutes."""
    pauses = []
    monkeypatch.setattr(time, 'sleep', pauses.append)
    with pytest.raises(UserError, match='source.invalid cannot be reached: prepare it elsewhere') as error:
        list(documents('tfds:cloze_far_away'))
    assert str(error.value).startswith('--corpus tfds:cloze_far_away: not prepared here')
    assert 0 < sum(pauses) < 20
