"""What goes wrong in a run: it is asked to stop, the disk is full, a file rots, a loss is not finite."""

import os
import re
from pathlib import Path

import jax
import numpy as np
import pytest

from tests.integration.commands import STEPS, one_line
from tests.integration.faults_case import OFTEN, PLAIN, Command, Watched, assert_same_end, compiled_once, ended
from train.checkpoints import Checkpoints
from train.metrics import read

AT = 10
"""The step, from 0, at which faults are put that could be put at any."""
RETIRED = 'The same command goes on from here.'


@pytest.fixture
def command(place, monkeypatch, capfd):
    jax.devices()  # before a command says how many it wants
    for name in ('XLA_FLAGS', 'TF_CPP_MIN_LOG_LEVEL'):
        monkeypatch.setenv(name, '')  # put back afterwards, whatever a command sets
    monkeypatch.chdir(place.folder)
    monkeypatch.syspath_prepend(place.folder)
    monkeypatch.setattr('train.program.Program.compile_step', compiled_once)
    monkeypatch.setattr('train.preemption.Preemption', Watched)
    for module in ('experiments.study', 'experiments.finetuning.run'):
        monkeypatch.setattr(f'{module}.Preemption', Watched)
    return Command(place.folder, monkeypatch, capfd)


_undisturbed = []


@pytest.fixture
def undisturbed(command):
    """What the run comes to when nothing goes wrong."""
    if not _undisturbed:
        assert command.ablate('tiny.py', f'undisturbed-{os.getpid()}', *PLAIN).code == 0
        _undisturbed.append(ended(command.folder / f'undisturbed-{os.getpid()}'))
    return _undisturbed[0]


def once(hook, when=lambda *_, **__: True):
    """The hook at the first call for which `when` holds."""
    left = [hook]

    def called(*arguments, **named):
        if left and when(*arguments, **named):
            left.pop()()

    return called


MOMENTS = {
    'compilation': ('train.program.Program.compile_step', None, 1),
    'a step': ('train.program.Program.settings', lambda program, step: step == AT, AT + 1),
    'evaluation along the curve': ('train.evaluate.HeldOut.curve', None, 16),
    'a save': ('train.checkpoints.write_hashes', lambda step, items: step.name.startswith(f'{AT}.'), None),
    'evaluation at the end': ('train.evaluate.HeldOut.figures', None, STEPS),
}


QUICK = ('a step', 'a save')


@pytest.mark.parametrize('moment', [m if m in QUICK else pytest.param(m, marks=pytest.mark.slow) for m in MOMENTS])
def test_asked_to_stop_it_saves_exits_with_0_and_goes_on(command, undisturbed, moment):
    target, when, reached = MOMENTS[moment]
    workdir = command.folder / f'stopped-in-{moment.replace(" ", "-")}'
    with command.patch.context() as patch:
        inner = Command(command.folder, patch, command.capture)
        inner.on(target, once(command.terminate, when or (lambda *_, **__: True)))
        said = inner.ablate('tiny.py', workdir.name, *PLAIN, *(OFTEN if moment == 'a save' else []))
    assert said.code == 0, said.err
    assert 'SIGTERM: saving and stopping' in said.err and 'Traceback' not in said.err
    assert said.out.endswith(f'{RETIRED}\n')
    saved = Checkpoints(workdir / 'checkpoints' / '0').steps()[-1]
    assert saved == reached or (reached is None and AT < saved < STEPS)
    if reached != STEPS:
        assert f'stopped at step {saved} of {STEPS}; saved.' in said.out
    said = command.ablate('tiny.py', workdir.name, *PLAIN)
    assert said.code == 0, said.err
    assert 'report.html' in said.out
    assert f'goes on from step {saved} of {STEPS}' in said.out
    assert_same_end(workdir, undisturbed)


TASKS = """
from tiny import *
from data.tasks.config import TaskConfig
from train.config import TaskEvaluation
from train.finetuning.recipe import Recipe

def config(scale):
    ablation = __import__('tiny').config(scale)
    short = Recipe(learning_rate=1e-3, epochs=1, batch_size=8, train_rows=24, max_length=16, seeds=1)
    tasks = tuple(TaskEvaluation(TaskConfig(task='corpus:label'), name, short) for name in ('one', 'two'))
    base = dataclasses.replace(ablation.base, evaluation=dataclasses.replace(ablation.base.evaluation, tasks=tasks))
    return dataclasses.replace(ablation, base=base)
"""


def test_asked_to_stop_while_replicas_are_fine_tuned_and_scored(command):
    (command.folder / 'stopping.py').write_text(TASKS)
    words = ('stopping.py', 'stopped-in-fine-tuning', *PLAIN, '--evaluation.curve_every', '0')
    workdir = command.folder / words[1]

    def scored():
        return [record['task'] for record in read(workdir) if record['kind'] == 'evaluated']

    with command.patch.context() as patch:
        inner = Command(command.folder, patch, command.capture)
        inner.on('train.finetuning.program.Program.settings', once(command.terminate))
        said = inner.ablate(*words)
        assert said.code == 0 and 'Traceback' not in said.err
        assert said.out.endswith(f'stopped at step 1 of 3 of one. {RETIRED}\n') and scored() == []
        inner.on('train.finetuning.tune._evaluate', once(command.terminate))
        said = inner.ablate(*words)
        assert said.code == 0 and 'one: goes on from step 1 of 3' in said.out and 'Traceback' not in said.err
        assert scored() == ['one']
        assert said.out.endswith(f'stopped before two. {RETIRED}\n')
    said = command.ablate(*words)
    assert said.code == 0 and 'compiled' not in said.out and scored() == ['one', 'two']
    tuned = sorted((r['task'], r['arm']) for r in read(workdir) if r['kind'] == 'finetuned')
    assert tuned == [(task, arm) for task in ('one', 'two') for arm in ('15%', '40%', 'random initialisation')]


def no_space(*_, **__):
    raise OSError(28, os.strerror(28))


FULL = {
    'before a save returns': 'orbax.checkpoint.CheckpointManager.save',
    "in Orbax's thread": 'orbax.checkpoint._src.checkpointers.async_checkpointer._on_commit_callback',
}


@pytest.mark.parametrize(
    'where', [pytest.param(where, marks=[] if 'Orbax' in where else pytest.mark.slow) for where in FULL]
)
def test_a_full_disk_in_a_save_is_one_line_and_the_same_command_goes_on(command, undisturbed, where):
    workdir = command.folder / f'full-{len(where)}'

    def fill(*_, **__):
        command.patch.setattr(FULL[where], no_space)

    with command.patch.context() as patch:
        patch.setattr(FULL[where], no_space)
        first = Command(command.folder, patch, command.capture).ablate('tiny.py', workdir.name, *PLAIN)
    folder = workdir.resolve() / 'checkpoints' / '0'
    mend = 'make room, then give the same command again'
    assert first.code == 2 and one_line(first.err) == (
        f'{folder}: the checkpoint of step 24 could not be written (No space left on device); there is no earlier one: '
        f'{mend}'
    )
    assert not list(folder.glob('*tmp*'))
    with command.patch.context() as patch:
        inner = Command(command.folder, patch, command.capture)
        inner.on('train.program.Program.settings', once(lambda: patch.setattr(FULL[where], no_space), at_step(AT)))
        second = inner.ablate('tiny.py', workdir.name, *PLAIN, *OFTEN)
    assert second.code == 2
    said = one_line(second.err)
    step = int(re.search(r'the checkpoint of step (\d+) could not be written', said).group(1))
    assert AT <= step <= AT + 1  # the save of the step before may be under way still
    assert said.endswith(f'the checkpoint of step {step - 1} is whole: {mend}')
    assert Checkpoints(folder).steps()[-1] == step - 1
    third = command.ablate('tiny.py', workdir.name, *PLAIN)
    assert third.code == 0 and f'goes on from step {step - 1} of {STEPS}' in third.out
    assert_same_end(workdir, undisturbed)


def at_step(wanted: int):
    return lambda program, step: step == wanted


def test_a_rotten_newest_checkpoint_is_passed_over_by_name(command, undisturbed):
    workdir = command.folder / 'rotten'
    with command.patch.context() as patch:
        inner = Command(command.folder, patch, command.capture)
        inner.on('train.program.Program.settings', once(command.terminate, at_step(AT)))
        assert inner.ablate('tiny.py', workdir.name, *PLAIN, *OFTEN).code == 0
    newest = workdir.resolve() / 'checkpoints' / '0' / str(AT + 1)
    path = max((path for path in newest.rglob('*') if path.is_file()), key=lambda path: path.stat().st_size)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    said = command.ablate('tiny.py', workdir.name, *PLAIN)
    assert said.code == 0 and 'report.html' in said.out, said.err
    lines = said.out.splitlines()
    passed = next(i for i, line in enumerate(lines) if line.startswith(f'Checkpoint {newest} is damaged or incomplete'))
    assert f'{path.relative_to(newest)} has sha256' in lines[passed]
    assert lines[passed + 1] == f'Going on from the checkpoint of step {AT}.'
    assert_same_end(workdir, undisturbed)


def ruined(program_settings):
    """From step AT on arm 40% has an infinite learning rate: that update is the last that is counted for it."""

    def settings(program, step):
        found = program_settings(program, step)
        if step < AT:
            return found
        rates = np.asarray(found.learning_rate)
        arms = [replica.arm for replica in program.cohort.replicas]
        spoilt = jax.device_put(
            np.where(np.array(arms) == '40%', np.float32('inf'), rates), found.learning_rate.sharding
        )
        return found._replace(learning_rate=spoilt)

    return settings


@pytest.mark.slow
def test_a_replica_that_is_not_finite_stops_the_run_or_is_left_out_where_that_is_asked_for(command, undisturbed):
    from train.program import Program

    workdir, words = command.folder / 'ruined', ('tiny.py', 'ruined', *PLAIN, *OFTEN)
    command.patch.setattr(Program, 'settings', ruined(Program.settings))
    fails = AT + 2  # steps count from 1, and the update after the ruinous one is not finite
    said = command.ablate(*words)
    batch = Path('ruined') / f'failed-batch-{fails}.npz'
    mend = 'try a lower --optimizer.learning_rate or --optimizer.clip_norm 1 in another --workdir'
    found = f'the loss or a gradient is not finite at step {fails} of {STEPS} (arm 40%, seed 0'
    others = 'or let the others go on with --run.on_nan continue'
    message = f'{found}; its batch is in {batch}; the checkpoint of step {fails - 1} is the last): {mend}; {others}'
    assert said.code == 2 and one_line(said.err) == message
    with np.load(command.folder / batch) as rows:
        assert rows['tokens_SxBxL'].shape == (1, 4, 16) and rows['row_ids_SxB'].shape == (1, 4)
    assert Checkpoints(workdir / 'checkpoints' / '0').steps()[-1] == fails - 1
    again = command.ablate(*words)
    assert again.code == 2 and one_line(again.err) == message

    with command.patch.context() as patch:
        inner = Command(command.folder, patch, command.capture)
        inner.on('train.program.Program.settings', once(command.terminate, at_step(20)))
        said = inner.ablate(*words, '--run.on_nan', 'continue')
    assert said.code == 0 and f'arm 40%, seed 0: not finite at step {fails}; kept as it was before' in said.out
    refused = command.ablate(*words)  # it has failed already
    assert refused.code == 2
    assert one_line(refused.err) == f'{found}; the checkpoint of step 21 is the last): {mend}; {others}'
    said = command.ablate(*words, '--run.on_nan', 'continue')
    assert said.code == 0 and 'goes on from step 21' in said.out
    failed = [(r['arm'], r['seed'], r['step']) for r in read(workdir) if r['kind'] == 'failed']
    assert failed == [('40%', 0, fails)]
    table = (workdir / 'table.md').read_text()
    assert f'Failed, and left out of every figure: arm 40%, seed 0 (at step {fails})' in table
    assert_same_end(workdir, undisturbed, arms=('15%',))
