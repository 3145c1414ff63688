"""What a user gets from each command: files, tables, and that the same command again does no more than is new."""

import json
import re
import shutil

import jax
import numpy as np
import pytest

from experiments.config_paths import differences
from experiments.load import load_replica
from experiments.reporting.records import read_csv
from tests.integration.commands import LEAN, STEPS, contents, one_line
from train.metrics import read

FAILING = """def config(scale):
    return __import__('tiny').config(scale, much={**MUCH, 'optimizer.learning_rate': 1e30})"""
CROSSED = """PEAK = BASE.stages[1]
def config(scale):
    # Its second stage peaks so high that the one arm's best rate is the other's ruin, or does nothing for it.
    tall = (BASE.stages[0], dataclasses.replace(PEAK, restart=True, peak_scale=1e28))
    return __import__('tiny').config(scale, much={**MUCH, 'stages': tall})"""
GOES_ON = ['--run.on-nan', 'continue']
WITHOUT_JAX = """
import sys
sys.modules['jax'] = sys.modules['flax'] = None  # importing them raises
from experiments import cli, report
cli.run(report.main)
"""


def rows(workdir, **wanted) -> dict:
    """Figures in results.csv: everything but the value -> the value."""
    found = {row[:-1]: row.value for row in read_csv(workdir / 'results.csv')}
    return {row: value for row, value in found.items() if set(wanted.items()) <= set(zip(NAMES, row, strict=True))}


NAMES = ('arm', 'seed', 'stage', 'step', 'metric', 'eval_rate', 'task', 'ft_seed')


def trained(output: str) -> list[str]:
    """The cohorts that a command compiled."""
    return re.findall(r'cohort (\d+): compiled', output)


def largest_difference(params, other) -> float:
    pairs = zip(jax.tree.leaves(params), jax.tree.leaves(other), strict=True)
    return max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)


def test_an_ablation_ends_with_a_table_and_a_workdir_that_holds_everything(place, finished):
    workdir, output = finished
    assert 'training a' not in output  # the prepared store was there
    assert 'Loss, nats a token' in output
    for arm in ('15% (baseline)', '40%'):
        line = next(line for line in output.splitlines() if line.startswith(f'| {arm} '))
        assert re.fullmatch(r'\| \S+( \(baseline\))? +\| +1 \|( +\d\.\d{3} \(one seed\) \|){2} .*', line)
    files = contents(workdir)
    assert {'config.json', 'metrics.jsonl', 'results.csv', 'table.md', 'report.html'} <= files.keys()
    assert {'differences.png', 'curves.png'} == {name for name in files if name.endswith('.png')}
    assert f'checkpoints/0/{STEPS}/commit_success.txt' in files and 'tokenizer/tokenizer.model' in files
    assert not [name for name in files if '.part' in name or 'tmp' in name]
    for arm in ('15', '40'):
        (shown,) = [content for name, content in files.items() if name.startswith(f'tensorboard/{arm}%-0/')]
        assert b'train/loss' in shown and b'loss/0.15' in shown

    config = json.loads(files['config.json'])
    assert config['scale'] == 'cpu' and config['command'].startswith('python -m experiments.ablate tiny.py')
    assert config['ablation']['arms'] == {
        '15%': {'masking.corruption_rate': 0.15},
        '40%': {'masking.corruption_rate': 0.4},
    }
    assert config['configs']['40%']['model']['vocab_size'] == 384

    assert files['results.csv'].decode().splitlines()[0] == ','.join((*NAMES, 'value'))
    for arm in ('15%', '40%'):
        figures = rows(workdir, arm=arm, seed=0, step=STEPS)
        measured = {(row[4], row[5]) for row in figures}
        assert {('loss', 0.15), ('loss', 0.4), ('accuracy', 0.4), ('likelihood', None), ('probe', None)} <= measured
        assert {('flops', None), ('tokens', None), ('targets', None)} <= measured
    assert {row[4] for row in rows(workdir, arm='')} >= {'unigram_loss', 'left_loss', 'both_loss'}

    page = files['report.html'].decode()
    assert page.count('data:image/png;base64,') == 2
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    table = files['table.md'].decode()
    assert 'Loss, nats a token' in table and re.search(r'Machine: .*, \d{4}-\d\d-\d\d\.', table)


def test_the_same_command_again_trains_nothing_and_changes_no_result(place, finished, copied):
    workdir = copied('again')
    before = contents(workdir)
    output = place.ablate('tiny.py', 'again').stdout
    assert trained(output) == []
    assert output.splitlines()[-6:-1] == finished[1].splitlines()[-6:-1]
    assert output.splitlines()[-1] == 'again/report.html'
    after = contents(workdir)
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} <= {'report.html', 'differences.png', 'curves.png'}


def test_more_seeds_train_what_is_new_and_pool_to_the_same_table(place, finished, copied):
    workdir = copied('grown')
    before = contents(workdir)
    output = place.ablate('tiny.py', 'grown', '--seeds', '2').stdout
    assert trained(output) == ['1']
    after = contents(workdir)
    old = [name for name in before if name.startswith(('checkpoints/0/', 'tensorboard/', 'tokenizer/'))]
    assert old and all(after[name] == before[name] for name in old)
    assert after['metrics.jsonl'].startswith(before['metrics.jsonl'])
    assert rows(workdir, seed=0) == rows(finished[0], seed=0)
    assert rows(workdir, seed=1).keys() == {(row[0], 1, *row[2:]) for row in rows(workdir, seed=0)}

    assert 'reports were made on seed 0.' in ' '.join(output.split())

    place.ablate('tiny.py', 'apart', '--first-seed', '1')
    assert load_replica(place.folder / 'apart')[-3:] == ('15%', 1, STEPS)
    printed = place.run('report', 'finished', 'apart').stdout
    pooled = place.folder / 'finished_pooled'
    assert rows(pooled) == pytest.approx(rows(workdir), rel=1e-6)
    assert '2 seeds (0, 1)' in printed and 'Pooled from' in printed
    assert re.search(r'\| 15% \(baseline\) +\| +2 \|', printed)


def test_pretrain_ends_with_the_weights_of_the_replica_in_the_ablation(place, finished):
    place.run('pretrain', 'tiny.py', '--arm', '40%', '--workdir', 'alone', *place.flags, *LEAN)
    alone = place.folder / 'alone'
    (config, params, *_), (other, same, *_) = load_replica(alone, '40%', 0), load_replica(finished[0], '40%', 0)
    assert all(name.startswith('evaluation.') for name in differences(config, other))
    assert largest_difference(params, same) <= 1e-5
    assert largest_difference(load_replica(finished[0], '15%', 0)[1], same) > 1e-3

    def losses(workdir):
        lines = [record for record in read(workdir) if record['kind'] == 'train' and record['arm'] == '40%']
        return {(line['stage'], line['step']): line['loss'] for line in lines}

    assert len(losses(alone)) == STEPS // 4
    assert losses(alone) == pytest.approx(losses(finished[0]), abs=1e-5)
    assert {row[0] for row in rows(alone)} == {'', '40%'}  # nothing else was trained


def test_the_report_is_rebuilt_from_two_files_without_jax(place, finished):
    workdir = place.folder / 'two-files'
    workdir.mkdir()
    for name in ('config.json', 'metrics.jsonl'):
        shutil.copy(finished[0] / name, workdir)
    place.python('-c', WITHOUT_JAX, 'two-files')
    for name in ('results.csv', 'table.md'):
        assert (workdir / name).read_bytes() == (finished[0] / name).read_bytes()
    assert (workdir / 'report.html').exists() and (workdir / 'differences.png').exists()


def test_fill_mask_prints_five_guesses_with_probabilities(place, finished):
    output = place.run('fill_mask', '--workdir', 'finished', '--arm', '40%', 'The [MASK] of the Union').stdout
    lines = output.splitlines()
    assert lines[0] == '[MASK] 1' and len(lines) == 6
    shares = [float(re.match(r' +(\d+\.\d)%  \S', line).group(1)) for line in lines[1:]]
    assert shares == sorted(shares, reverse=True) and 0 < sum(shares) <= 100
    assert all(' of the Union' in line for line in lines[1:])


def test_an_arm_that_fails_is_reported_in_words_while_the_others_go_on(place, finished):
    place.write('failing.py', FAILING)
    ran = place.ablate('failing.py', 'failing', *GOES_ON)
    assert 'arm 40%, seed 0: not finite at step' in ran.stdout
    failed = [record for record in read(place.folder / 'failing') if record['kind'] == 'failed']
    assert [(record['arm'], record['seed']) for record in failed] == [('40%', 0)]
    table = (place.folder / 'failing' / 'table.md').read_text()
    assert 'Failed, and left out of every figure: arm 40%, seed 0 (at step' in table and 'curve_loss' not in table
    assert re.search(r'\| 40% +\| +0 \| +no result \|', table)
    assert rows(place.folder / 'failing', arm='15%') == rows(finished[0], arm='15%')
    assert {row[4] for row in rows(place.folder / 'failing', arm='40%')} == {'failed'}

    before = contents(place.folder / 'failing')
    said = one_line(place.run('report', 'finished', 'failing', code=2).stderr)
    assert 'cannot be pooled; they differ in' in said and 'optimizer.learning_rate (arm 40%)' in said
    assert contents(place.folder / 'failing') == before


def test_a_run_in_which_all_fail_exits_with_2_and_saves_the_batch(place):
    words = ('tiny.py', 'hopeless', '--optimizer.learning-rate', '1e30', *GOES_ON)
    ran = place.ablate(*words, code=2)
    said = one_line(ran.stderr)
    assert 'not finite in any replica since step' in said and '--optimizer.learning_rate' in said
    (saved,) = (place.folder / 'hopeless').glob('failed-batch-*.npz')
    assert str(saved.relative_to(place.folder)) in said
    with np.load(saved) as batch:
        assert batch['tokens_SxBxL'].shape == (1, 4, 16) and batch['row_ids_SxB'].shape == (1, 4)
    assert one_line(place.ablate(*words, code=2).stderr) == said


def test_a_cohort_in_which_all_fail_does_not_keep_the_others_from_training(place):
    lines = ["HOPELESS = {'model.layers': 2, 'optimizer.learning_rate': 1e30}"]
    place.write('half.py', *lines, 'def config(scale, _config=config):', '    return _config(scale, much=HOPELESS)')
    said = one_line(place.ablate('half.py', 'half', *LEAN, *GOES_ON, code=2).stderr)
    assert 'not finite in any replica' in said and 'arm 40%' in said
    assert {row.arm for row in read_csv(place.folder / 'half' / 'results.csv') if row.metric == 'loss'} == {'15%'}
    assert 'Failed, and left out of every figure: arm 40%' in (place.folder / 'half' / 'table.md').read_text()


def test_a_grid_chooses_for_each_arm_and_the_report_shows_it(place):
    place.write('crossed.py', CROSSED)
    workdir = place.folder / 'crossed'
    output = place.ablate('crossed.py', 'crossed', '--grid', 'optimizer.learning_rate=1e-2,1e-30', *LEAN).stdout
    assert trained(output) == ['0', '1']  # tuning, then the table
    record = json.loads((workdir / 'config.json').read_text())
    grid = record['grid']
    assert grid['chosen'] == {'15%': 0.01, '40%': 1e-30}
    seed = grid['tuning_seed']
    losses = {
        figure['arm']: figure['value']
        for figure in read(workdir)
        if figure['kind'] == 'figure' and figure['metric'] == 'loss' and figure['eval_rate'] == 0.15
        if figure['seed'] == seed
    }
    for arm, chosen in grid['chosen'].items():
        tried = {value: losses.get(f'{arm} @ optimizer.learning_rate={value:g}', np.inf) for value in (0.01, 1e-30)}
        assert min(tried, key=tried.get) == chosen
        assert (np.inf in tried.values()) == (arm == '40%')
        assert record['configs'][arm]['optimizer']['learning_rate'] == chosen
    assert {(row[0], row[1]) for row in rows(workdir)} == {('', None), ('15%', 0), ('40%', 0)}
    table = (workdir / 'table.md').read_text()
    assert '## Tuning' in table and re.search(r'\| 40% +\| +failed \| +\d\.\d+ \| +1e-30 \|', table)
