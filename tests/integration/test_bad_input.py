"""A mistake on the command line or in a config file: one line that names it, exit code 2, nothing left behind."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from experiments import cli
from tests.integration.commands import one_line

NEW = ['tiny.py', '--workdir', 'new']
CHANGE = "'masking.corruption_rate': 0.4"
"""What tiny.py's second arm changes."""


@pytest.mark.parametrize(
    ('words', 'said'),
    [
        ([], 'needs a config file first, such as configs/masking_rate.py'),
        (['--scale', 'cpu'], 'needs a config file first'),
        (['nowhere.py'], 'no config file nowhere.py'),
        (['store'], 'no config file store'),
        ([*NEW, '--colour', 'red'], 'Unrecognized options: --colour'),
        ([*NEW, '--masking.colour', 'red'], '--masking.colour'),
        ([*NEW, '--optimizer.learning_rte', '1'], 'Perhaps you meant --optimizer.learning-rate'),
        ([*NEW, 'tiny.py'], 'Unrecognized options: tiny.py'),
        ([*NEW, '--optimizer.learning-rate', 'fast'], '--optimizer.learning-rate: could not convert string to float'),
        ([*NEW, '--model.layers', '1.5'], '--model.layers'),
        ([*NEW, '--stages.0.steps', str(10**20)], f'steps is {10**20}: use a number below 2**31'),
        ([*NEW, '--model.norm', 'middle'], '--model.norm'),
        ([*NEW, '--seeds'], "'--seeds'"),
        ([*NEW, '--scale', 'big'], '--scale big is not one of smoke, cpu, overnight, paper'),
        ([*NEW, '--seeds', '-1'], '--seeds -1 --first_seed 0: use 0 or more'),
        ([*NEW, '--first-seed', '-1'], '--first_seed -1: use 0 or more'),
        ([*NEW, '--first-seed', '999999', '--seeds', '2'], '--first_seed 999999: use 0 or more; seeds end below 1000'),
    ],
)
def test_flags(refused, words, said):
    assert said in refused('ablate', *words)


@pytest.mark.parametrize(
    ('words', 'said'),
    [
        ('--masking.corruption-rate 1.5', 'masking.corruption_rate is 1.5: a rate lies between 0 and 1'),
        ('--masking.corruption-rate -0.1', 'masking.corruption_rate is -0.1: a rate lies between 0 and 1'),
        ('--masking.prediction-rate 1.5', 'masking.prediction_rate is 1.5: a rate lies between 0 and 1'),
        ('--masking.rule 0.5 0.1 0.1', 'masking.rule (0.5, 0.1, 0.1) sums to 0.7: the three shares must sum to 1'),
        ('--masking.rule 0.5 0.5', '--masking.rule'),
        ('--objective.name mlm_sop', 'objective.name mlm_sop judges pairs: set objective.rows to segment_pairs or'),
        ('--data.language English', "data.language is 'English': use an ISO 639 code such as en or de"),
        ('--masking.corruption-rate 0.2', 'are the same run: --masking.corruption_rate leave no difference'),
        ('--evaluation.rates 0.15 1.5', 'evaluation.rates (0.15, 1.5): give at least one rate'),
        ('--evaluation.rates 0.3', 'primary_rate 0.15 is none of evaluation.rates (0.3,)'),
        ('--run.profile 32 40', 'run.profile (32, 40) begins after the run, which has 32 updates'),
        ('--run.devices 100000', 'run.devices is 100000: a CPU is split into 1024 devices at most'),
        ('--model.width 15', 'model.width 15 is not a multiple of model.heads 2'),
        ('--model.vocab-size 77', '--model.vocab_size 77: the tokenizer has 384; leave the flag out'),
        ('--stages.0.length 2000', 'model.max_length 32 is below the longest stage, 2000'),
        ('--stages.7.length 16', '--stages.7.length'),
        ('--optimizer.micro-batches 3', 'batch_size 4 is not a multiple of optimizer.micro_batches 3'),
        ('--run.mesh 8 1 4 1', 'run.mesh (8, 1, 4, 1) needs 32 devices; there are'),
        ('--run.mesh 0 1 1 1', 'run.mesh is (0, 1, 1, 1): use 1 or more for each axis, or -1'),
        ('--run.devices -1', 'run.devices and run.keep_every 0 or more'),
        ('--model.init_stddev nan', 'model.init_stddev is nan: use a number above 0'),
        ('--run.checkpoint_seconds inf', 'run.checkpoint_seconds is inf: use 0 or more'),
        ('--model.norm_epsilon -1', 'model.norm_epsilon is -1.0: use a number above 0'),
        ('--optimizer.epsilon inf', 'optimizer.epsilon is inf: use a number above 0'),
        ('--evaluation.rates 0.15 0.005', 'evaluation.rates 0.005: that is no token of a row of 32'),
        ('--evaluation.rates 0.15 0.15', 'give at least one rate above 0 and up to 1, each once'),
    ],
)
def test_what_a_config_cannot_be(refused, words, said):
    assert said in refused('ablate', *NEW, *words.split())


@pytest.mark.parametrize(
    ('grid', 'said'),
    [
        ('optimizer.learning_rate', 'write it as FIELD=NUMBER,NUMBER'),
        ('optimizer.learning_rate=slow,fast', 'write it as FIELD=NUMBER,NUMBER'),
        ('optimizer.learning_rate=1e-3,', 'write it as FIELD=NUMBER,NUMBER'),
        ('optimizer.learning_rate=nan,1', 'write it as FIELD=NUMBER,NUMBER'),
        ('optimizer.learning_rate=[1],[2]', 'write it as FIELD=NUMBER,NUMBER'),
        ('optimizer.learning_rate=1e-3,0.001', 'give at least two values'),
        ('optimizer.nothing=1,2', "no field 'optimizer.nothing'"),
        ('=1,2', "no field ''"),
        ('model.layers=1.5,2', 'model.layers is 1.5: use a whole number'),
        ('optimizer.learning_rate=-1,1', 'optimizer.learning_rate is -1: use 0 or more'),
        ('masking.corruption_rate=0.1,0.2', 'some arms differ in nothing else'),
    ],
)
def test_grid(refused, grid, said):
    found = refused('ablate', *NEW, '--grid', grid)
    assert found.startswith('--grid') and said in found


@pytest.mark.parametrize(
    ('words', 'said'),
    [
        (['--arm', '50%'], "--arm '50%' is not in this config: its arms are '15%', '40%'"),
        (['--seed', '-1'], '--seed -1: use a number from 0 to 999999'),
        (['--seed', '1000000'], '--seed 1000000: use a number from 0 to 999999'),
        (['--seeds', '2'], '--seeds'),
    ],
)
def test_pretrain(refused, words, said):
    assert said in refused('pretrain', *NEW, *words)


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('def config(scale):\n    return (1\n', "wrong.py, line 2: '(' was never closed"),
        ('import nowhere\n', "wrong.py: ModuleNotFoundError: No module named 'nowhere'"),
        ('x = 1\n', 'wrong.py: give it a function config(scale) that returns an Ablation'),
        ('def config(scale):\n    return {}\n', 'wrong.py: give it a function config(scale) that returns an Ablation'),
        ('def config(scale):\n    return {}["x"]\n', "wrong.py: KeyError: 'x'"),
        ('import sys\nsys.exit(0)\n', 'wrong.py: SystemExit: 0'),
        ('\0', 'wrong.py'),
    ],
)
def test_config_file(refused, text, said):
    Path('wrong.py').write_text(text)
    assert said in refused('ablate', 'wrong.py')


@pytest.mark.parametrize(
    ('old', 'new', 'said'),
    [
        (CHANGE, "'masking.rate': 0.4", "no field 'masking.rate' in the config"),
        (CHANGE, "'masking.corruption_rate': 1.4", 'masking.corruption_rate is 1.4: a rate lies between 0 and 1'),
        (CHANGE, "'masking.corruption_rate': '0.4'", "masking.corruption_rate is '0.4': use a number"),
        (CHANGE, "'masking.corruption_rate': 0.15", 'the same run: their changes leave no difference'),
        (CHANGE, "'masking.rule': (0.5, 0.1, 0.1)", 'sums to 0.7: the three shares must sum to 1'),
        (CHANGE, "'masking.rule': [1, 0, 0]", 'masking.rule is [1, 0, 0]: use a tuple of a number, a number, a number'),
        (CHANGE, "'model.norm': 'middle'", "model.norm is 'middle': use post or pre"),
        (CHANGE, "'stages.0.steps': 2.5", 'stages.0.steps is 2.5: use a whole number'),
        (CHANGE, "'stages': BASE.stages[0]", 'use a tuple, each entry a Stage'),
        (CHANGE, "'data.corpus': 'files:*.txt'", "arm '40%' changes data.corpus: arms read one corpus"),
        ('layers=1', 'layers=True', 'base.model.layers is True: use a whole number'),
        ('batch_size=4, steps', 'batch_size=4.0, steps', 'base.stages.0.batch_size is 4.0: use a whole number'),
        ('vocab_size=384', "tokenizer='words'", "data.tokenizer is 'words': use unigram, bpe or hf:PATH"),
        ("'15%', seeds=1", "'15', seeds=1", "baseline '15' is not an arm; the arms are 15%, 40%"),
        ('seeds=1', "seeds=1, comparison='both'", "comparison is 'both': use paired or welch"),
        ('seeds=1', 'seeds=1, colour=1', 'colour'),
    ],
)
def test_what_a_config_file_states(refused, old, new, said):
    text = Path('tiny.py').read_text()
    assert text.count(old) == 1
    Path('wrong.py').write_text(text.replace(old, new))
    found = refused('ablate', 'wrong.py', '--workdir', 'new')
    assert found.startswith('wrong.py: ') and said in found


def test_as_a_user_sees_it(place):
    """In processes of their own, in which JAX knows nothing yet."""
    wrong = place.write('syntax.py', 'def config(scale:')
    assert one_line(place.ablate(wrong, 'new', code=2).stderr).startswith('syntax.py, line 3: ')
    plain = {'PYTHONIOENCODING': 'ascii'}  # tyro draws no box there
    ran = place.run('ablate', 'tiny.py', '--masking.corruption-rate', '1.5', code=2, settings=plain)
    assert 'masking.corruption_rate is 1.5: a rate lies between 0 and 1' in one_line(ran.stderr)
    ran = place.ablate('tiny.py', 'new', '--run.devices', '2', '--run.mesh', *'4111', code=2)
    assert 'run.mesh (4, 1, 1, 1) needs 4 devices; there are 2' in one_line(ran.stderr)
    assert not (place.folder / 'new').exists()


@pytest.mark.parametrize('command', ['ablate', 'pretrain'])
def test_help_names_every_field_with_its_meaning(monkeypatch, capsys, command):
    monkeypatch.setenv('COLUMNS', '200')
    monkeypatch.setattr(sys, 'argv', [f'{command}.py', '--help'])
    with pytest.raises(SystemExit) as stop:
        cli.run(import_module(f'experiments.{command}').main)
    assert stop.value.code == 0
    said = ' '.join(capsys.readouterr().out.split())
    for words in ('--workdir', '--masking.corruption-rate FLOAT', 'Peak learning rate.', '--run.mesh INT INT INT INT'):
        assert words in said
