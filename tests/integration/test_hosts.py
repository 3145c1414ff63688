"""Runs of several processes: the figures of one process, each row once, and one way out for all of them."""

import re
import shutil
import signal
import time

import pytest

from experiments.reporting.records import read_csv
from tests.integration.commands import LEAN, contents
from tests.integration.processes import start
from train.metrics import read

LENGTH, BATCH, STEPS = 16, 8, 24
WIDE = f"""BASE = dataclasses.replace(
    BASE,
    stages=(Stage(length={LENGTH}, batch_size={BATCH}, steps={STEPS}),),
    run=RunConfig(log_every=1),
)

def config(scale, little=LITTLE, much=MUCH):
    return Ablation('wide', 'Nothing shows.', BASE, (Arm('15%', little), Arm('40%', much)), '15%', seeds=1)"""
TASK = """from data.tasks.config import TaskConfig
from train.config import TaskEvaluation
from train.finetuning.recipe import Recipe

def config(scale):
    ablation = __import__('wide').config(scale)
    short = Recipe(learning_rate=1e-3, epochs=1, batch_size=8, train_rows=24, max_length=16, seeds=2)
    tasks = (TaskEvaluation(TaskConfig(task='corpus:label'), 'label', short),)
    base = dataclasses.replace(
        ablation.base,
        stages=(*ablation.base.stages, Stage(length=32, batch_size=8, steps=4)),
        evaluation=dataclasses.replace(ablation.base.evaluation, tasks=tasks),
    )
    return dataclasses.replace(ablation, base=base)"""
ROWS = 100
"""Rows of the first stage's length that are trained on: an epoch is half of the stage."""
TERM, KILL, STOP = (int(each) for each in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP))


@pytest.fixture(scope='session')
def command(place):
    """Words of a command that trains one arm with rows for two epochs; the workdir comes last."""
    place.write('wide.py', WIDE)
    few = ['--data.max-train-tokens', f'{ROWS * (LENGTH - 2)}']
    return ['pretrain', 'wide.py', *place.flags, *few, *LEAN, '--workdir']


@pytest.fixture(scope='session')
def alone(place, command):
    """Workdir of the run of one process that has the four devices to itself."""
    start(place, 'one-process', 1, *command, 'one-process', devices=4).ends()
    return place.folder / 'one-process'


def losses(workdir) -> dict:
    return {(r['arm'], r['seed'], r['step']): r['loss'] for r in read(workdir) if r['kind'] == 'train'}


def figures(workdir, *but: str) -> dict:
    return {row[:-1]: row.value for row in read_csv(workdir / 'results.csv') if row.metric not in but}


def written(workdir) -> set[str]:
    """Its files, but for those whose names or number depend on the run."""
    return {name for name in contents(workdir) if not name.startswith(('checkpoints/', 'tensorboard/'))}


def assert_same(workdir, reference):
    """Losses of every step and the figures at the end; sums over devices come in another order."""
    assert losses(workdir) == pytest.approx(losses(reference), rel=2e-5)
    assert figures(workdir) == pytest.approx(figures(reference), rel=2e-5)


def assert_each_row_once(seen):
    """Within its first two epochs, over all runs and processes."""
    first = [each for each in seen if each.length == LENGTH]
    assert len(first) == BATCH * STEPS
    pairs = [(each.epoch, each.row) for each in first]
    assert len(set(pairs)) == len(pairs)
    assert {row for epoch, row in pairs if epoch == 0} == set(range(ROWS))


def stopped_at(run) -> int:
    return int(re.search(r'stopped at step (\d+) of', run.said()).group(1))


def test_two_processes_train_as_one_and_stop_together(place, command, alone):
    first = start(place, 'first', 2, *command, 'two', signals={1: f'{TERM}@{LENGTH}:{5 * BATCH}'}).ends()
    step = stopped_at(first)
    assert 'SIGTERM' in first.said(1) and 'SIGTERM' not in first.said(0)
    assert [path.name for path in (place.folder / 'two/checkpoints/0').iterdir()] == [f'{step}']
    assert 5 < step < STEPS and {seen.position for seen in first.rows()} == {BATCH * index for index in range(step)}
    assert 'stopped' not in first.said(1)  # the first process speaks for all

    second = start(place, 'second', 2, *command, 'two').ends()
    assert f'goes on from step {step}' in second.said()
    shares = [{each.position % BATCH for each in run.rows()} for run in (first, second)]
    assert shares == [{0}, {0}]
    assert_each_row_once(first.rows() + second.rows())
    assert_same(place.folder / 'two', alone)
    assert written(place.folder / 'two') == written(alone)


@pytest.mark.slow
def test_what_a_run_of_several_processes_cannot_do_is_one_line_from_each(place, command):
    """A batch of two rows leaves half of the devices idle, and so a process."""
    run = start(place, 'idle', 2, *command, 'idle', '--stages.0.batch-size', 2).ends(2, 2)
    for number in range(2):
        line = run.said(number).splitlines()[-1]
        assert line.startswith('error: run.mesh') and 'leaves processes [1] without work' in line
    assert not (place.folder / 'idle').exists()


@pytest.mark.slow
def test_processes_with_workdirs_of_their_own_are_refused_at_once(place, command):
    run = start(place, 'apart', 2, *command, 'apart-PROCESS').ends(2, 2)
    for number in range(2):
        line = run.said(number).splitlines()[-1]
        assert line == 'error: --workdir: not all processes of this run were given apart-0, as the first was'
    assert not list(place.folder.glob('apart-[01]'))


@pytest.mark.slow
def test_each_process_compares_its_share_of_the_store_with_its_hashes(place, command):
    """Of the files, train's tokens are the first process's and train's documents the second's."""
    shutil.copytree(place.folder / 'store', place.folder / 'damaged')
    shard = place.folder / 'damaged/train.documents-00000.bin'
    content = bytearray(shard.read_bytes())
    content[8] ^= 1
    shard.write_bytes(content)
    words = ['damaged' if word == 'store' else word for word in command]
    run = start(place, 'unsound', 2, *words, 'unsound').ends(2, 2)
    here, elsewhere = (run.said(number).splitlines()[-1] for number in (1, 0))
    assert here.startswith('error: damaged/train.documents-00000.bin is damaged: its sha256 is ')
    assert elsewhere.startswith('error: another host finds the token store damaged missing or damaged')
    assert not (place.folder / 'unsound').exists()


@pytest.mark.slow
def test_four_processes_then_two_one_and_four_again(place, command, alone):
    seen, stops = [], []
    for count, position in ((4, 3), (2, 8), (1, 13)):
        signals = {count - 1: f'{TERM}@{LENGTH}:{position * BATCH}'}
        run = start(place, f'chain-{count}', count, *command, 'chain', signals=signals).ends()
        stops.append(stopped_at(run))
        assert f'goes on from step {stops[-2]}' in run.said() if len(stops) > 1 else True
        seen += run.rows()
    run = start(place, 'chain-end', 4, *command, 'chain').ends()
    assert f'goes on from step {stops[-1]}' in run.said() and stops == sorted(set(stops))
    assert_each_row_once(seen + run.rows())
    assert_same(place.folder / 'chain', alone)


@pytest.mark.slow
@pytest.mark.parametrize('killed', [0, 1])
def test_a_killed_process_ends_the_others_and_the_same_command_goes_on(place, command, alone, killed):
    words = [*command, f'killed-{killed}', '--run.checkpoint-seconds', 0]
    run = start(place, f'killed-{killed}', 2, *words, signals={killed: f'{KILL}@{LENGTH}:{12 * BATCH}'})
    assert run.processes[killed].wait(timeout=900) == -KILL
    began = time.monotonic()
    other = run.processes[1 - killed].wait(timeout=300)
    assert other not in (0, 2) and time.monotonic() - began < 240, run.all_said()
    again = start(place, f'again-{killed}', 2, *words).ends()
    assert 0 < int(re.search(r'goes on from step (\d+) of', again.said()).group(1)) <= 12
    assert_same(place.folder / f'killed-{killed}', alone)


@pytest.mark.slow
def test_a_process_that_hangs_ends_the_others(place, command):
    run = start(place, 'hung', 2, *command, 'hung', signals={1: f'{STOP}@{LENGTH}:{4 * BATCH}'})
    try:
        assert run.processes[0].wait(timeout=900) not in (0, 2), run.all_said()
    finally:
        run.processes[1].kill()
        run.processes[1].wait()


@pytest.mark.slow
@pytest.mark.parametrize('count', [2, 4])
def test_an_ablation_with_all_its_measures_and_a_task(place, count):
    """Arms lie on processes of their own; figures that time alone decides are left out."""
    place.write('wide.py', WIDE)
    place.write('wide_task.py', TASK)
    words = ['ablate', 'wide_task.py', *place.flags, '--workdir']
    start(place, f'one-{count}', 1, *words, f'one-{count}', devices=2 * count).ends()
    start(place, f'several-{count}', count, *words, f'several-{count}').ends()
    one, several = (place.folder / f'{name}-{count}' for name in ('one', 'several'))
    assert figures(several).keys() == figures(one).keys()
    assert_same(several, one)
    shown = [[r for r in read(workdir) if r['kind'] == 'example'] for workdir in (one, several)]
    assert [r['masked'] for r in shown[0]] == [r['masked'] for r in shown[1]]
    assert (several / 'report.html').exists()
