"""The configs at smoke scale, whole: on the corpus, in the default folders, as their headers say."""

import json
import os
import re
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from experiments.reporting.records import read_csv
from tests.integration.commands import ROOT, Place
from train.metrics import read

CONFIGS = sorted(path.stem for path in (ROOT / 'configs').glob('*.py') if 'def config(' in path.read_text())

LEAN = ('--evaluation.likelihood-paragraphs=0', '--evaluation.probe-paragraphs=0', '--evaluation.curve-every=0')
"""What masking_rate's run has tried already."""


@pytest.fixture(scope='session')
def clone(tmp_path_factory) -> Place:
    """A working directory with nothing in it but the configs."""
    clone = Place(tmp_path_factory.mktemp('clone'))
    (clone.folder / 'configs').symlink_to(ROOT / 'configs')
    return clone


def smoke(clone: Place, name: str, *words, settings=None) -> tuple[str, Path]:
    """Runs a config at smoke scale; what it printed, and its workdir."""
    command = 'pretrain' if name.startswith('bert_') else 'ablate'
    ran = clone.run(command, f'configs/{name}.py', '--scale', 'smoke', *words, settings=settings)
    assert ran.stderr == ''
    (workdir,) = (clone.folder / 'runs').glob(f'{name}-smoke' if command == 'ablate' else f'{name}-*-smoke')
    return ran.stdout, workdir


def programs(workdir: Path) -> list[set[str]]:
    """The arms that trained together, program by program."""
    config = json.loads((workdir / 'config.json').read_text())
    return [{arm for arm, _ in cohort['replicas']} for cohort in config['cohorts']]


def figure(workdir: Path, metric: str) -> dict[str, float]:
    """An unrated figure of each arm."""
    return {row.arm: row.value for row in read_csv(workdir / 'results.csv') if row.metric == metric}


def test_masking_rate_arms_differ_in_traced_numbers_and_share_a_program(clone):
    output, workdir = smoke(clone, 'masking_rate')
    assert re.search(r'runs/stores/\S+: read 249 documents; dropped none', output)
    assert programs(workdir) == [{'15%', '30%', '40%'}]
    assert re.search(r'\| 40% +\| +2 \|', output)
    assert 'unigram entropy' in output and 'one program' in output
    targets = figure(workdir, 'targets')
    for few, many in pairwise(('15%', '30%', '40%')):
        assert targets[few] < targets[many]
    assert {record['task'] for record in read(workdir) if record.get('metric') == 'probe'} == {'century'}


def test_curriculum_arms_differ_in_structure_and_run_one_after_another(clone):
    output, workdir = smoke(clone, 'curriculum', *LEAN, '--evaluation.probe-paragraphs=1')
    assert output.count('no probe of the frozen features: too few held-out paragraphs') == 1
    assert programs(workdir) == [{'short, then long'}, {'long, equal tokens'}, {'long, equal FLOPs'}]
    assert re.findall(r'cohort (\d): compiled (\d) stages?', output) == [('0', '2'), ('1', '1'), ('2', '1')]
    assert 'two programs' in output
    tokens, flops = figure(workdir, 'tokens'), figure(workdir, 'flops')
    assert tokens['long, equal tokens'] == pytest.approx(tokens['short, then long'], rel=0.05)
    assert flops['long, equal FLOPs'] == pytest.approx(flops['short, then long'], rel=0.05)
    stages = {(line['arm'], line['stage']) for line in read(workdir) if line['kind'] == 'train'}
    assert stages == {(arm, 0) for arm in tokens} | {('short, then long', 1)}


AT_ONE_LENGTH = """import dataclasses

from configs import prediction_rate, scales


def config(scale):
    whole = prediction_rate.config(scale)
    return dataclasses.replace(whole, base=scales.one_length(whole.base))
"""


def test_prediction_rate_arms_encode_copies(clone):
    """At one length: a second one would compile each of its four programs twice."""
    (clone.folder / 'one_length.py').write_text(AT_ONE_LENGTH)
    words = ('one_length.py', '--scale', 'smoke', *LEAN, '--stages.0.steps', '12', '--workdir', 'runs/one_length')
    assert clone.run('ablate', *words).stderr == ''
    workdir = clone.folder / 'runs' / 'one_length'
    one, two, four, eight = programs(workdir)
    assert one == {'corrupt 40%, predict 40%', 'corrupt 40%, predict 20%', 'corrupt 20%, predict 20%'}
    assert (two, four) == ({'corrupt 20%, predict 40%'}, {'corrupt 10%, predict 40%'})
    assert eight == {'corrupt 5%, predict 40%'}
    targets, flops = figure(workdir, 'targets'), figure(workdir, 'flops')
    base = 'corrupt 40%, predict 40%'
    assert targets['corrupt 5%, predict 40%'] == pytest.approx(targets[base], rel=0.05)
    assert targets['corrupt 40%, predict 20%'] == pytest.approx(targets[base] / 2, rel=0.05)
    tokens = figure(workdir, 'tokens')
    assert tokens['corrupt 5%, predict 40%'] == 8 * tokens[base]
    # Not 8 times: the one layer of this scale is computed at the scored positions alone but for keys and values.
    assert 2 < flops['corrupt 5%, predict 40%'] / flops[base] < 8
    assert 'Wettig et al. 2023, Table 3' in (workdir / 'table.md').read_text()


@pytest.mark.slow
@pytest.mark.parametrize('name', CONFIGS)
def test_every_config_runs_at_smoke_scale(clone, tmp_path, name):
    """As a user runs it: optimised programs, no compilation cache filled by others. Prints the wall time."""
    place = Place(tmp_path)
    (tmp_path / 'configs').symlink_to(ROOT / 'configs')
    if not (clone.folder / 'runs/stores').exists():
        clone.run('prepare')
    (tmp_path / 'runs').mkdir()
    (tmp_path / 'runs/stores').symlink_to(clone.folder / 'runs/stores')
    began = time.monotonic()
    output, workdir = smoke(place, name, settings={'XLA_FLAGS': ''})
    seconds = time.monotonic() - began
    print(f'\n{name} at smoke scale: {seconds:.0f} s, load {os.getloadavg()[0]:.0f}', file=sys.stderr)
    arms = set(json.loads((workdir / 'config.json').read_text())['ablation']['arms'])
    measured = {row.arm for row in read_csv(workdir / 'results.csv') if row.metric in ('loss', 'probe')}
    assert arms <= measured and 'failed' not in output
    assert {'table.md', 'report.html', 'results.csv'} <= {path.name for path in workdir.iterdir()}
