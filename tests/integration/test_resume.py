"""The whole command, killed and started again: it must end with the same bits as a run that nobody disturbed."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest

from train.checkpoints import Checkpoints
from train.metrics import read

ROOT = Path(__file__).parents[2]
SWITCH, STEPS = 240, 320
"""The step at which the second stage starts, and the last."""
CONFIG = f"""
from experiments.ablation import Ablation, Arm
from data.config import DataConfig
from model.config import ModelConfig
from train.config import Config, EvaluationConfig, RunConfig, Stage

def config(scale):
    base = Config(
        data=DataConfig(vocab_size=384),
        model=ModelConfig(layers=1, width=32, heads=2, feed_forward=64, max_length=64),
        stages=(Stage(length=32, batch_size=8, steps={SWITCH}), Stage(length=64, batch_size=4, steps={STEPS - SWITCH})),
        evaluation=EvaluationConfig(
            rates=(0.15,), rows=16, curve_every=100, curve_rows=8, batch_size=8,
            likelihood_paragraphs=0, probe_paragraphs=0, examples=0,
        ),
        run=RunConfig(checkpoint_seconds=0.4, log_every=20, tensorboard=False),
    )
    falling = {{'masking.corruption_rate': 0.4, 'masking.rate_points': ((1.0, 0.15),)}}
    return Ablation('kill', 'Nothing shows.', base, (Arm('15', {{}}), Arm('falling', falling)), '15', seeds=1)
"""
SEED = 20_240
"""Of the random moments."""


@dataclass
class Case:
    """A run small enough to be killed often, and how the undisturbed one ended."""

    folder: Path

    @property
    def reference(self) -> Path:
        return self.folder / 'reference'

    def start(self, workdir: Path) -> 'Run':
        flags = {
            '--workdir': workdir,
            '--data.corpus': f'files:{self.folder / "corpus.txt"}',
            '--data.store': self.folder / 'store',
            '--run.compilation-cache': self.folder / 'cache',
        }
        words = [str(word) for flag in flags.items() for word in flag]
        command = [sys.executable, '-m', 'experiments.ablate', str(self.folder / 'kill.py'), *words]
        env = dict(os.environ, JAX_PLATFORMS='cpu')
        with open(workdir.with_suffix('.log'), 'ab') as log:
            said_before, saved_before = log.tell(), _entries(workdir / 'checkpoints' / '0')
            process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=subprocess.STDOUT)
        return Run(process, workdir, Path(log.name), said_before, saved_before)

    def finish(self, workdir: Path) -> str:
        run = self.start(workdir)
        assert run.process.wait(timeout=300) == 0, run.said()
        return run.said()


@dataclass
class Run:
    """The command in a process of its own."""

    process: subprocess.Popen
    workdir: Path
    log: Path
    said_before: int
    saved_before: set
    began: float = field(default_factory=time.monotonic)

    @property
    def checkpoints(self) -> Path:
        return self.workdir / 'checkpoints' / '0'

    def said(self) -> str:
        return self.log.read_bytes()[self.said_before :].decode()

    def wrote(self, pattern: str) -> bool:
        """Whether it has begun a step that matches."""
        return bool(_entries(self.checkpoints, pattern) - self.saved_before)

    def wait_until(self, condition) -> bool:
        """False if the process ended first."""
        end = time.monotonic() + 300
        while not condition(self):
            if self.process.poll() is not None:
                return False
            assert time.monotonic() < end, self.said()
            time.sleep(0.001)
        return True

    def kill_when(self, condition) -> bool:
        """False if the process ended first, and well."""
        self.wait_until(condition)
        self.process.kill()
        code = self.process.wait()
        assert code in (0, -signal.SIGKILL), self.said()
        return code != 0


@pytest.fixture(scope='session')
def case(tmp_path_factory):
    case = Case(tmp_path_factory.mktemp('resume'))
    words = random.Random(0)
    letters = [''.join(words.choices('abcdeilmnorstu', k=words.randint(1, 9))) for _ in range(400)]
    documents = [
        '\n'.join(' '.join(words.choices(letters, k=12)) + '.' for _ in range(words.randint(3, 9))) for _ in range(160)
    ]
    (case.folder / 'corpus.txt').write_text('\n\n'.join(documents))
    (case.folder / 'kill.py').write_text(CONFIG)
    case.finish(case.reference)
    return case


def _entries(folder: Path, pattern: str = '*') -> set:
    found = set()
    for path in folder.glob(pattern):
        with contextlib.suppress(FileNotFoundError):  # renamed in between
            found.add((path.name, path.stat().st_ctime_ns))
    return found


def in_a_save(run: Run) -> bool:
    return run.wrote('*.orbax-checkpoint-tmp*')


def in_the_save_at_the_switch(run: Run) -> bool:
    return run.wrote(f'{SWITCH}*')


def planned(run: Run) -> bool:
    return (run.workdir / 'config.json').exists()


def training(run: Run) -> bool:
    return 'compiled' in run.said()


def evaluating(run: Run) -> bool:
    return run.wrote(str(STEPS))


def after(seconds: float):
    return lambda run: time.monotonic() - run.began >= seconds


def newest_state(folder: Path):
    """(step, state on one device, meta) as stored, without a target."""
    newest = str(max(int(path.name) for path in folder.iterdir() if path.name.isdecimal()))
    with ocp.StandardCheckpointer() as reader:
        stored = reader.metadata(folder / newest / 'state').item_metadata.tree
    return Checkpoints(folder).restore(jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), stored))


def final_state(workdir: Path):
    step, state, _ = newest_state(workdir / 'checkpoints' / '0')
    assert step == STEPS
    return state


def figures(workdir: Path) -> dict:
    fields = ('arm', 'seed', 'stage', 'step', 'metric', 'eval_rate')
    return {
        tuple(record.get(field) for field in fields): record['value']
        for record in read(workdir)
        if record['kind'] == 'figure'
    }


def assert_same_end(case: Case, workdir: Path):
    ours, reference = final_state(workdir), final_state(case.reference)
    assert jax.tree.structure(ours) == jax.tree.structure(reference)
    for path, leaf in jax.tree_util.tree_leaves_with_path(ours):
        other = dict(jax.tree_util.tree_leaves_with_path(reference))[path]
        np.testing.assert_array_equal(np.asarray(leaf), np.asarray(other), err_msg=jax.tree_util.keystr(path))
    assert figures(workdir) == figures(case.reference)
    lines = [(r['arm'], r['seed'], r['step']) for r in read(workdir) if r['kind'] == 'train']
    assert sorted(lines) == sorted(
        (r['arm'], r['seed'], r['step']) for r in read(case.reference) if r['kind'] == 'train'
    )


def test_stopped_once_and_killed_three_times_it_ends_with_the_same_bits(case):
    """Three ways: resumed equals undisturbed, and differs from a resumption that forgot its optimizer's moments."""
    workdir, cold = case.folder / 'resumed', case.folder / 'cold'
    moment = random.Random(SEED).random()  # seconds: before it is through

    run = case.start(workdir)
    assert run.wait_until(in_a_save)
    run.process.terminate()
    assert run.process.wait(timeout=300) == 0, run.said()
    stopped_at = max(int(path.name) for path in run.checkpoints.iterdir() if path.name.isdecimal())
    assert 'SIGTERM' in run.said()
    assert f'stopped at step {stopped_at} of {STEPS}; saved. The same command goes on from here.' in run.said()
    assert stopped_at < SWITCH

    shutil.copytree(workdir, cold)
    _forget_moments(cold / 'checkpoints' / '0')
    without_moments = case.start(cold)  # beside the others

    assert case.start(workdir).kill_when(in_a_save)
    assert list((workdir / 'checkpoints' / '0').glob('*-tmp*'))
    assert case.start(workdir).kill_when(in_the_save_at_the_switch)
    run = case.start(workdir)
    run.wait_until(training)
    run.kill_when(after(time.monotonic() - run.began + moment))
    planted = workdir / 'checkpoints' / '0' / '100000'
    planted.mkdir()
    said = case.finish(workdir)
    assert f'{planted} is damaged or incomplete and passed over' in said
    assert 'Going on from the checkpoint of step' in said
    shutil.rmtree(planted, ignore_errors=True)  # still there if all was saved before the last kill
    assert_same_end(case, workdir)

    assert without_moments.process.wait(timeout=300) == 0, without_moments.said()
    weights = [jax.tree.leaves(final_state(folder)['params']) for folder in (cold, workdir)]
    assert any((a != b).any() for a, b in zip(*weights, strict=True))


def _forget_moments(folder: Path):
    step, state, meta = newest_state(folder)
    shutil.rmtree(folder)
    state['opt_state'] = jax.tree.map(jnp.zeros_like, state['opt_state'])
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(step, state, meta)


@pytest.mark.slow
@pytest.mark.parametrize('moment', [planned, evaluating])
def test_asked_to_stop_elsewhere_than_in_a_step(case, moment):
    workdir = case.folder / f'stopped-{moment.__name__}'
    run = case.start(workdir)
    assert run.wait_until(moment)
    run.process.terminate()
    assert run.process.wait(timeout=300) == 0, run.said()
    case.finish(workdir)
    assert_same_end(case, workdir)


@pytest.mark.slow
def test_killed_twenty_times_it_ends_with_the_same_bits(case):
    draw = random.Random(SEED + 1)
    kills, runs = 0, 0
    while kills < 20:
        workdir = case.folder / f'killed-often-{runs}'
        runs += 1
        first, last = after(12 * draw.random()), after(12 * draw.random())
        for condition in (first, in_a_save, in_the_save_at_the_switch, draw.choice([evaluating, last])):
            kills += case.start(workdir).kill_when(condition)
        case.finish(workdir)
        assert_same_end(case, workdir)
