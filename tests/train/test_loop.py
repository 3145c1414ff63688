"""The training loop: what it compiles and when, what it waits for, what it traces and how it counts its work."""

import contextlib
import dataclasses
import sys
import time
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from data.errors import UserError
from tests.train.heldout_case import LetterTokenizer, random_split
from tests.train.step_case import cohort, config
from train import chips, loop
from train.checkpoints import Checkpoints
from train.cohort import CONTROL
from train.config import RunConfig, Stage
from train.flops import step_flops
from train.metrics import Metrics, read
from train.preemption import Preemption
from train.program import Program
from train.records import StepRecords
from train.step import Metrics as StepMetrics

CONFIG = dataclasses.replace(
    config(steps=6), stages=(Stage(length=12, batch_size=4, steps=4), Stage(length=24, batch_size=2, steps=3))
)


STORE = SimpleNamespace(train=random_split(0, 30), tokenizer=LetterTokenizer())


@dataclasses.dataclass
class Watched:
    """A program that is compiled once for all tests, and notes what becomes of it."""

    program: Program
    updates: list
    state: Any
    events: list = dataclasses.field(default_factory=list)

    def __getattr__(self, name):
        return getattr(self.program, name)

    def init(self):
        return jax.tree.map(jnp.copy, self.state)

    def compile_step(self, stage):
        self.events.append(('compiled', stage))
        return partial(self.step, stage)

    def step(self, stage, state, settings, batch):
        self.events.append(('step', stage))
        return self.updates[stage](state, settings, batch)


@pytest.fixture(scope='module')
def compiled():
    program = Program.of(cohort({'a': CONFIG}), STORE.tokenizer.vocabulary)
    return program, [program.compile_step(stage) for stage in range(2)], program.init()


def run(tmp_path, program, clock=time.monotonic, log=lambda _: None, **settings):
    """Trains one replica from its first step to its last."""
    run_config = RunConfig(**{'keep_checkpoints': 1, **settings})
    group = cohort({'a': dataclasses.replace(CONFIG, run=run_config)})
    program.program = dataclasses.replace(program.program, cohort=group)
    with (
        Preemption() as preemption,
        Metrics(tmp_path) as writer,
        Checkpoints(tmp_path / 'checkpoints', run_config.keep_checkpoints, print, run_config.keep_every) as checkpoints,
    ):
        meta = {'replicas': [['a', 0]], 'tokenizer': 'case'}
        rest = {'workdir': tmp_path, 'log': log, 'clock': clock}
        loop.train(program, STORE, checkpoints, writer, preemption, meta, lambda *_: None, **rest)


def test_every_stage_is_compiled_before_the_first_step(tmp_path, compiled):
    program = Watched(*compiled)
    run(tmp_path, program)
    assert program.events == [('compiled', 0), ('compiled', 1), *[('step', 0)] * 4, *[('step', 1)] * 3]


def test_a_stage_that_does_not_fit_is_named_before_the_first_step(tmp_path, compiled):
    class Full(Watched):
        def compile_step(self, stage):
            if stage == 1:
                raise jax.errors.JaxRuntimeError('RESOURCE_EXHAUSTED: 20.50G exceeds available HBM (15.75G).\nmore')
            return super().compile_step(stage)

    program = Full(*compiled)
    with pytest.raises(UserError, match=r'stages.1 \(length 24, batch_size 2\) does not fit.*micro_batches.*15.75G'):
        run(tmp_path, program)
    assert program.events == [('compiled', 0)]


def test_metrics_are_fetched_one_step_late(tmp_path, compiled, monkeypatch):
    """Nothing between the dispatch of a step and that of the next waits for either."""
    events, numbers, get = [], iter(range(100)), jax.device_get

    class Numbered:
        def __init__(self, metrics):
            self.metrics, self.number = metrics, next(numbers)
            events.append(('dispatched', self.number))

    class Late(Watched):
        def step(self, *arguments):
            state, metrics = super().step(*arguments)
            return state, Numbered(metrics)

    def device_get(tree):
        if isinstance(tree, Numbered):
            events.append(('fetched', tree.number))
            return get(tree.metrics)
        return get(tree)

    monkeypatch.setattr(jax, 'device_get', device_get)
    run(tmp_path, Late(*compiled))
    late = [each for step in range(1, 4) for each in (('dispatched', step), ('fetched', step - 1))]
    assert events[:8] == [('dispatched', 0), *late, ('fetched', 3)]  # at the end of a stage it waits


def test_nothing_but_rows_and_settings_goes_to_the_devices(tmp_path, compiled):
    """Those are put there on purpose; anything else in the loop that would need a copy is refused here."""
    with contextlib.ExitStack() as guarded:

        class Guarded(Watched):
            def settings(self, step):
                if step == 0:  # what comes before the first step may
                    guarded.enter_context(jax.transfer_guard('disallow'))
                with jax.transfer_guard('allow'):
                    return self.program.settings(step)

            def batch(self, *arguments):
                with jax.transfer_guard('allow'):
                    return self.program.batch(*arguments)

        program = Guarded(*compiled)
        run(tmp_path, program)
    assert program.events.count(('step', 1)) == 3


def test_a_trace_holds_the_steps_that_are_asked_for(tmp_path, compiled):
    run(tmp_path, Watched(*compiled), profile=(2, 5))
    (file,) = (tmp_path / 'profile').rglob('*.xplane.pb')
    events = [
        event
        for plane in jax.profiler.ProfileData.from_file(str(file)).planes
        for line in plane.lines
        for event in line.events
    ]
    steps = [int(dict(event.stats)['step_num']) for event in events if event.name == 'train']
    assert sorted(steps) == [2, 3, 4]


def test_a_trace_ends_with_the_run(tmp_path, compiled):
    run(tmp_path, Watched(*compiled), profile=(6, 100))
    assert list((tmp_path / 'profile').rglob('*.xplane.pb'))


@pytest.mark.parametrize(
    ('settings', 'saved', 'kept'),
    [
        ({'checkpoint_seconds': 1e6}, [4, 7], [7]),  # the ends of stages
        ({'checkpoint_seconds': 20}, [2, 4, 6, 7], [7]),
        ({'checkpoint_seconds': 30}, [3, 4, 7], [7]),  # counted from the save before, at step 4
        ({'checkpoint_seconds': 30, 'keep_checkpoints': 2}, [3, 4, 7], [4, 7]),
        ({'checkpoint_seconds': 1e6, 'keep_every': 3}, [3, 4, 6, 7], [3, 6, 7]),
        ({'checkpoint_seconds': 20, 'keep_every': 3}, [2, 3, 4, 6, 7], [3, 6, 7]),
        ({'checkpoint_seconds': 0}, [1, 2, 3, 4, 5, 6, 7], [7]),
    ],
)
def test_saves_go_by_steps_and_by_the_clock(tmp_path, compiled, monkeypatch, settings, saved, kept):
    """A step takes ten seconds here."""
    found, save, flush, flushed = [], Checkpoints.save, Metrics.flush, []
    monkeypatch.setattr(Checkpoints, 'save', lambda *a: (found.append(a[1]), save(*a))[1])
    # Records are handed over before the state that they belong to.
    monkeypatch.setattr(Metrics, 'flush', lambda writer: (flushed.append(len(found)), flush(writer))[1])
    program = Watched(*compiled)
    run(tmp_path, program, clock=lambda: 10.0 * sum(kind == 'step' for kind, _ in program.events), **settings)
    assert found == saved and flushed == [*range(len(saved))]
    assert Checkpoints(tmp_path / 'checkpoints').steps() == kept


@pytest.mark.parametrize(
    'wrong', [{'keep_every': -1}, {'keep_checkpoints': 0}, {'checkpoint_seconds': -1.0}, {'on_nan': 'go on'}]
)
def test_saves_and_failures_are_asked_for_in_known_words(wrong):
    with pytest.raises(ValueError, match=f'run.{next(iter(wrong))}'):
        RunConfig(**wrong)


@pytest.mark.parametrize('steps', [(5, 4), (-1, 4)])
def test_steps_to_trace_are_in_order(steps):
    with pytest.raises(ValueError, match='run.profile'):
        RunConfig(profile=steps)


@pytest.mark.parametrize('peak', [None, 1e12])
def test_utilisation_is_the_share_of_the_peak_that_the_model_needs(tmp_path, peak):
    a, b = (dataclasses.replace(config(rate=rate, steps=4), run=RunConfig(log_every=2)) for rate in (0.15, 0.4))
    group = cohort({'a': a, 'b': b})
    ones = np.ones(2, np.float32)
    with Metrics(tmp_path) as writer:
        records = StepRecords(group, writer, lambda _: None, peak)
        for step in range(4):
            records.add(step, StepMetrics({'loss': (ones, ones)}, ones, ones, np.ones(2, bool)))
        records.flush()
    found = read(tmp_path)
    assert len(found) == 4
    for record in found:
        if peak is None:
            assert record['mfu'] is None
        else:
            # Tokens of both replicas together, as the utilisation is of both.
            per_token = (step_flops(a, 0) + step_flops(b, 0)) / (2 * 8 * 24)
            assert record['mfu'] == pytest.approx(per_token * record['cohort_tokens_per_second'] / peak)


def test_a_record_says_how_many_steps_it_averages(tmp_path):
    """Taken up after step 3, its first window is cut short by the line at step 4."""
    each = dataclasses.replace(config(steps=6), run=RunConfig(log_every=2))
    one, half = np.ones(1, np.float32), np.full(1, 0.5, np.float32)
    with Metrics(tmp_path) as writer:
        records = StepRecords(cohort({'a': each}), writer, lambda _: None)
        for step in range(3, 6):
            pairs = {'loss': (one * (step + 1), one), 'accuracy': (half, one)}
            records.add(step, StepMetrics(pairs, one, one, np.ones(1, bool)))
        records.flush()
    found = [(record['step'], record['steps'], record['loss'], record['accuracy']) for record in read(tmp_path)]
    assert found == [(4, 1, 4.0, 50.0), (6, 2, 5.5, 50.0)]


def test_a_share_of_nothing_is_none(tmp_path):
    """Where no token was called replaced there is no precision; 0 would go into means as one."""
    each = dataclasses.replace(config(steps=2), run=RunConfig(log_every=1))
    one, none = np.ones(1, np.float32), np.zeros(1, np.float32)
    with Metrics(tmp_path) as writer:
        records = StepRecords(cohort({'a': each}), writer, lambda _: None)
        for step, called in enumerate((none, one)):
            pairs = {'loss': (one, one), 'precision': (none, called)}
            records.add(step, StepMetrics(pairs, one, one, np.ones(1, bool)))
        records.flush()
    assert [record['precision'] for record in read(tmp_path)] == [None, 0.0]


def test_a_line_of_progress(tmp_path):
    clock = [0.0]
    a, b = (dataclasses.replace(CONFIG, masking=config(rate=rate).masking) for rate in (0.15, 0.4))
    with Metrics(tmp_path) as writer:
        members = cohort({'a': a, f'a{CONTROL}': a, 'b': b})
        records = StepRecords(members, writer, lambda _: None, clock=lambda: clock[0])
        clock[0] = 7.0  # it compiles
        records.begin()
        three = np.ones(3, np.float32)
        for step, loss in enumerate((4.0, 2.0)):
            losses = np.array([loss, 9, np.nan], np.float32)
            records.add(step, StepMetrics({'loss': (losses, three)}, three, three, np.ones(3, bool)))
        records.flush()
        clock[0] = 9.0
        line = records.line(2)
    # 3 replicas have read 2 x 4 x 12 tokens in 2 s, and have 2 x 4 x 12 + 3 x 2 x 24 to go: 5 s.
    assert line == (
        'cohort 0: step 2 of 7; training loss, each arm at its own rate: a 3.000, b not finite; 144 tokens/s; '
        'about a minute left'
    )
    assert records.line(7).endswith('tokens/s')


@pytest.mark.parametrize('terminal', [False, True])
def test_without_a_terminal_each_checkpoint_has_a_line(tmp_path, compiled, monkeypatch, terminal):
    lines = []
    monkeypatch.setattr(sys.stderr, 'isatty', lambda: terminal)
    run(tmp_path, Watched(*compiled), log=lines.append)
    steps = [line.split(';')[0] for line in lines if 'tokens/s' in line]
    assert steps == ([] if terminal else ['cohort 0: step 4 of 7', 'cohort 0: step 7 of 7'])


def test_a_cpu_has_no_known_peak():
    assert chips.peak_flops(jax.devices('cpu')[0].device_kind) is None
    assert chips.peak_flops('TPU v5 lite') == 197e12
