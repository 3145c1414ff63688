"""experiments.finetune and experiments.predict, whole: what they leave, what they do again, what they refuse."""

import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from experiments import results
from tests.integration.commands import ROOT, contents
from train.metrics import read

COLUMNS = ['--first', 'text', '--label', 'label']
FLAGS = ['--task', 'table', '--data-dir', 'letters', *COLUMNS, '--max-length', '16', '--epochs', '8', '--seeds', '2']
BARE = ['--first', '', '--label', '']
FLAGS += ['--learning-rate', '1e-2', '--run.compilation-cache', 'cache']


@pytest.fixture(scope='session')
def letters(place):
    """Sentences about war and peace, and their test file without labels."""
    folder = place.folder / 'letters'
    folder.mkdir()
    for name, count in (('train', 120), ('dev', 20), ('test', 5)):
        rows = [f'{"the war goes on" if i % 2 else "peace is here"} in {1800 + i}' for i in range(count)]
        lines = [f'{text}\t{("peace", "war")[i % 2]}' for i, text in enumerate(rows)]
        head, lines = ('text\tlabel', lines) if name != 'test' else ('text', rows)
        (folder / f'{name}.tsv').write_text('\n'.join([head, *lines]) + '\n')
    return folder


@pytest.fixture(scope='session')
def tuned(place, finished, letters):
    """A workdir with two batch sizes, one of them chosen on a slice of train; the command, and what it printed."""
    command = ['--init', 'finished@32', '--arm', '40%', *FLAGS, '--grid', 'bert', '--workdir', 'tuned']
    command += ['--slice-percent', '20']
    return place.folder / 'tuned', command, place.run('finetune', *command).stdout


def test_a_grid_ends_with_a_table_predictions_and_one_model(tuned):
    workdir, _, output = tuned
    assert 'table, 96 training examples, percent' in output
    assert 'Chosen of 2 points by accuracy on 24 examples held out of train' in output
    (line,) = [line for line in output.splitlines() if line.startswith('| dev') and 'accuracy' in line]
    cells = [cell.strip() for cell in line.split('|')]
    assert float(cells[3]) >= 90 and cells[-3:-1] == ['2', '50.00']
    files = contents(workdir)
    assert output.strip().endswith(files['table.md'].decode().strip())
    assert {'config.json', 'metrics.jsonl', 'results.csv', 'table.md', 'tokenizer/tokenizer.model'} <= files.keys()
    assert not [name for name in files if name.startswith('checkpoints/') or '.part' in name]
    assert {name for name in files if name.startswith('predictions')} == {
        f'predictions/{split}/seed-{seed}/{split}.tsv' for split in ('dev', 'test') for seed in (0, 1)
    }
    lines = files['predictions/test/seed-1/test.tsv'].decode().splitlines()
    assert lines[0] == 'index\tprediction' and len(lines) == 6
    assert {line.split('\t')[1] for line in lines[1:]} <= {'war', 'peace'}
    results = [record for record in read(workdir) if record['kind'] == 'finetuned']
    assert {(r['arm'], r['seed'], r['ft_seed']) for r in results} == {('40%', 0, 0), ('40%', 0, 1)}
    assert len({r['point'] for r in results}) == 2 and len(results) == 4
    rows = list(csv.DictReader(files['results.csv'].decode().splitlines()))
    shown = {row['point'] for row in rows if row['chosen'] == '1'}
    means = {
        point: sum(r['selection'] for r in results if r['point'] == point) for point in {r['point'] for r in results}
    }
    assert len(shown) == 1 and means[shown.pop()] == max(means.values())
    assert json.loads(files['config.json'])['finetuning']['encoder']['arm'] == '40%'


def test_the_same_command_again_does_nothing_and_another_is_refused(place, tuned):
    workdir, command, output = tuned
    before = contents(workdir)
    steps = [line for line in output.splitlines(True) if line.startswith('table, program ')]
    assert steps and place.run('finetune', *command).stdout == ''.join(
        line for line in output.splitlines(True) if line not in steps
    )
    assert contents(workdir) == before
    other = [word if word != '8' else '7' for word in command]
    refused = place.run('finetune', *other, code=2).stderr
    assert 'holds another run' in refused and 'epochs 8 there, 7 here' in refused
    assert contents(workdir) == before


def test_what_is_no_text_is_one_line_in_any_locale(place, tuned):
    command = [sys.executable, '-m', 'experiments.predict', '--workdir', str(tuned[0])]
    env = {**os.environ, 'PYTHONPATH': str(ROOT), 'PYTHONIOENCODING': 'ascii'}
    ran = subprocess.run(command, input=b'a\xff\n', cwd=place.folder, env=env, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, b'error: standard input is not UTF-8: invalid start byte\n')


def test_predict_answers_line_by_line_as_the_model_did(place, tuned, letters):
    texts = (letters / 'test.tsv').read_text().splitlines()[1:]
    flags = ['--workdir', 'tuned', '--seed', '1', '--batch-size', '2']
    found = place.run('predict', *flags, stdin='\n'.join(texts)).stdout.splitlines()
    labels, probabilities = zip(*(line.split('\t') for line in found), strict=True)
    written = (tuned[0] / 'predictions' / 'test' / 'seed-1' / 'test.tsv').read_text().splitlines()[1:]
    assert list(labels) == [line.split('\t')[1] for line in written]
    assert all(0.5 <= float(probability) <= 1 for probability in probabilities)


def test_a_model_with_another_tokenizer_answers_nothing(refused, tuned, here, other_tokenizer):
    shutil.copytree(tuned[0], here / 'tuned')
    shutil.copy(other_tokenizer, here / 'tuned' / 'tokenizer' / 'tokenizer.model')
    said = refused('predict', '--workdir', 'tuned')
    assert said == 'tuned/tokenizer is not the tokenizer that tuned was fine-tuned with'


def test_a_damaged_model_is_not_to_be_had_again_by_the_command_that_made_it(refused, tuned, here):
    shutil.copytree(tuned[0], here / 'tuned')
    weights = max((here / 'tuned' / 'model').rglob('*'), key=lambda path: path.stat().st_size * path.is_file())
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    anew = 'fine-tune anew, with another --workdir'
    assert refused('predict', '--workdir', 'tuned') == f'tuned/model cannot be read: {anew}'
    shutil.rmtree(here / 'tuned' / 'model')
    assert refused('predict', '--workdir', 'tuned').endswith(f'give it again; else {anew}')
    (here / 'tuned' / 'tokenizer' / 'tokenizer.model').unlink()
    assert refused('predict', '--workdir', 'tuned').startswith(f'tuned/tokenizer cannot be read: {anew}')


def test_results_are_put_on_a_page(tuned, here, capsys):
    """Of workdirs alone: no data and no encoder is there."""
    workdir, command, output = tuned
    shutil.copytree(workdir, here / 'letters')
    results.main(['letters', '--title', 'Letters', '--out', 'docs/page.md'])
    assert capsys.readouterr().out == 'docs/page.md\n'
    text = (here / 'docs' / 'page.md').read_text()
    assert text.startswith('# Letters\n') and '## 40%, seed 0, of tiny' in text
    assert re.search(r'scale cpu, 32 steps: 1 layer, width 16, [\d,]+ parameters. Loss .*: [\d.]+ at 15% and ', text)
    (shown,) = [line for line in output.splitlines() if line.startswith('| dev') and 'accuracy' in line]
    (line,) = re.findall(r'\| letters +\| +dev \| +accuracy \|.*', text)
    there, found = ([cell.strip() for cell in each.split('|')] for each in (shown, line))
    assert found[4] == '20' and found[5] == there[3] and found[8:10] == there[-3:-1]
    assert 'Task table, 96 examples to train on. Batch ' in text and 'CPU cores, ' in text
    assert f'```\npython -m experiments.finetune {shlex.join(command)}\n```' in text
    assert 'in several starts' not in text
    records = [record | ({'seconds': None} if record['kind'] == 'run' else {}) for record in read(here / 'letters')]
    (here / 'letters' / 'metrics.jsonl').write_text(''.join(json.dumps(record) + '\n' for record in records))
    results.main(['letters', '--out', 'docs/page.md'])
    assert ', in several starts.' in (here / 'docs' / 'page.md').read_text()


def test_results_of_what_has_not_finished_are_refused(refused, tuned, finished, here):
    shutil.copytree(tuned[0], here / 'letters')
    (here / 'letters' / 'table.md').unlink()
    assert refused('results', 'letters') == ('letters has not finished: give its experiments.finetune command again')
    assert refused('results').startswith('name a workdir')
    shutil.copytree(finished[0], here / 'finished')
    assert refused('results', 'finished').startswith('finished is not a workdir of experiments.finetune')


@pytest.mark.parametrize(
    ('words', 'said'),
    [
        (['--init', ''], '--init is missing'),
        (['--init', 'nowhere'], 'nowhere is not a workdir: it has no config.json'),
        (['--init', 'hf:letters'], 'letters is no folder of transformers: it has no config.json'),
        (['--init', 'hf:letters', '--arm', '40%'], '--init hf:letters has no arms and seeds'),
        (['--init', 'finished@31'], 'finished has no checkpoint of step 31: it has 24, 32'),
        (['--arm', '50%'], "--arm '50%' is not in finished: it has '15%', '40%'"),
        (['--seed', '4'], "--seed 4: arm '15%' of finished has seeds 0"),
        (['--task', 'snli', *BARE], '--task snli: there is no such task; use cola, sst2'),
        (['--task', '', *BARE], '--task (none): there is no such task'),
        (['--data-dir', 'nowhere'], '--data_dir nowhere: no such file or folder'),
        (['--label', 'colour'], 'train.tsv'),
        (['--task', 'sst2'], 'task sst2 knows its columns'),
        (['--epochs', '0'], 'epochs is 0: use 1 or more'),
        (['--features', '2'], '--features 2: the encoder has 1 layers'),
        (['--grid', 'gpt'], '--grid'),
        (['--workdir', 'finished'], 'finished is not a workdir of experiments.finetune: its config.json is of another'),
        (['--workdir', 'letters'], '--workdir letters is not empty and has no config.json'),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(refused, finished, letters, here, words, said):
    for folder in (finished[0], letters):
        shutil.copytree(folder, here / folder.name)
    flags = ['--init', 'finished', '--workdir', 'new', *FLAGS, '--run.compilation-cache', '']
    command = dict(zip(flags[::2], flags[1::2], strict=True))
    command |= dict(zip(words[::2], words[1::2], strict=True))
    kept = {flag: value for flag, value in command.items() if value or flag not in BARE}
    assert said in refused('finetune', *(word for pair in kept.items() for word in pair))
