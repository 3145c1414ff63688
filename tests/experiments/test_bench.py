"""The bench: what it times is the same work on both sides, and how turns become a ratio."""

import dataclasses
import re

import jax
import numpy as np
import pytest

from data.config import DataConfig
from data.loader import HostBatch
from data.prepare import store_for
from experiments import bench, cli
from experiments.benching import loader, step, torch_peer
from experiments.benching.clock import Sides, alternate
from experiments.benching.ours import Steps
from model.config import ModelConfig
from tests.train.step_case import VOCABULARY
from train.cohort import Cohort, Replica
from train.config import Config, MaskingConfig, Stage
from train.program import Program

SMALL = Config(
    model=ModelConfig(layers=1, width=16, heads=2, feed_forward=32, max_length=32, vocab_size=VOCABULARY.size),
    masking=MaskingConfig(corruption_rate=0.4),
    stages=(Stage(length=32, batch_size=8, steps=100),),
)


def rows(batches: int) -> list[HostBatch]:
    """Rows of random words."""
    noise = np.random.default_rng(0)
    tokens = noise.choice(VOCABULARY.ordinary, (batches, 1, 8, 32))
    tokens[..., 0], tokens[..., -1] = VOCABULARY.cls, VOCABULARY.sep
    ids = np.arange(batches * 8).reshape(batches, 1, 8).astype(np.int32)
    return [HostBatch(*batch) for batch in zip(tokens, ids, np.zeros_like(ids), strict=True)]


def test_a_ratio_is_the_median_over_pairs_and_not_that_of_medians():
    sides = Sides(ours=(1.0, 2.0, 4.0), theirs=(3.0, 2.0, 6.0))
    assert (sides.ratio, sides.spread) == (1.5, (1.0, 3.0))


def test_turns_alternate_and_last_about_as_long_as_asked(monkeypatch):
    """With a clock of our own: a step of one side takes 0.1 s, of the other 0.3 s."""
    now, calls = [0.0], []

    def runner(name, seconds):
        def run(steps):
            calls.append((name, steps))
            now[0] += steps * seconds

        return run

    monkeypatch.setattr('time.perf_counter', lambda: now[0])
    sides = alternate(runner('ours', 0.1), runner('theirs', 0.3), pairs=3, seconds=3.0)
    assert calls[-6:] == [('ours', 30), ('theirs', 10)] * 3
    np.testing.assert_allclose([sides.ratio, *sides.ours], [3.0, 0.1, 0.1, 0.1])


def test_each_of_our_steps_is_carried_out_and_changes_the_weights():
    program = Program.of(Cohort('bench', (Replica('bench', 0, SMALL),)), VOCABULARY)
    steps = Steps(program, rows(2))
    steps(3)
    before = jax.device_get(steps._state.params)
    steps(2)
    assert int(jax.device_get(steps._state.step).squeeze()) == 5
    changed = jax.tree.map(lambda a, b: bool((np.asarray(a) != np.asarray(b)).any()), before, steps._state.params)
    assert all(jax.tree.leaves(changed))


@pytest.mark.parametrize('rate', [0.2, 0.4])
def test_the_other_side_gets_the_masks_that_our_step_draws(rate):
    config = dataclasses.replace(SMALL, masking=MaskingConfig(corruption_rate=rate))
    (host,) = rows(1)
    inputs = torch_peer.inputs(step.masked(config, host, VOCABULARY))
    scored_BxL = inputs['labels'] != -100
    assert (scored_BxL.sum(1) == round(rate * 30)).all()
    np.testing.assert_array_equal(inputs['labels'][scored_BxL], host.tokens_SxBxL[0][scored_BxL])
    np.testing.assert_array_equal(inputs['input_ids'][~scored_BxL], host.tokens_SxBxL[0][~scored_BxL])
    assert (inputs['input_ids'] == VOCABULARY.mask).sum() > 0.5 * scored_BxL.sum()


@pytest.mark.peers
def test_the_other_side_trains_a_model_with_as_many_parameters_on_the_same_masks():
    config = dataclasses.replace(SMALL, model=dataclasses.replace(SMALL.model, dropout=0.0, attention_dropout=0.0))
    host = rows(1)[0]
    theirs = torch_peer.TorchSteps(config, [step.masked(config, host, VOCABULARY)], threads=1)
    program = Program.of(Cohort('bench', (Replica('bench', 0, config),)), VOCABULARY)
    ours = sum(leaf.size for leaf in jax.tree.leaves(program.init().params))
    model = config.model
    padding = (model.padded_vocab_size - model.vocab_size) * (model.width + 1)  # rows of the table, and their biases
    assert sum(weight.numel() for weight in theirs._model.parameters()) == ours - padding
    before = [weight.detach().clone() for weight in theirs._model.parameters()]
    theirs(2)
    assert all((old != new).any() for old, new in zip(before, theirs._model.parameters(), strict=True))


@pytest.mark.parametrize(
    ('flag', 'value'),
    [
        ('only', 'everything'),
        ('only', 'finetune'),
        ('sizes', 'huge'),
        ('rates', '1.5'),
        ('lengths', '2'),
        ('pairs', '0'),
        ('seconds', '-1'),
        ('vocab_size', '5'),
    ],
)
def test_a_wrong_flag_is_one_line_that_names_it(flag, value, capfd, monkeypatch):
    monkeypatch.setattr('sys.argv', ['bench.py', '--only', 'step', f'--{flag}', value])
    with pytest.raises(SystemExit) as stop:
        cli.run(bench.main)
    assert stop.value.code == 2
    error = capfd.readouterr().err.strip()
    assert value in error and len(error.splitlines()) == 1, error


def test_it_prints_our_figures_alone_where_torch_is_not_installed(monkeypatch, capfd):
    monkeypatch.setattr(torch_peer, 'missing', lambda: ['torch'])
    monkeypatch.setattr(loader, 'STEPS', 4)
    monkeypatch.setattr(step, 'TOKENS', 256)
    bench.main(
        [
            '--only',
            'step',
            'loader',
            'preparation',
            '--sizes',
            'tiny',
            '--lengths',
            '64',
            '--rates',
            '0.15',
            '--pairs',
            '1',
            '--seconds',
            '0.01',
        ]
    )
    printed = capfd.readouterr().out
    assert 'torch not installed here (make venv-peers installs it)' in printed
    assert re.search(r'^ +tiny +64 +15% +[\d,]+$', printed, re.M), printed
    assert re.search(r'^Loader: [\d,]+ tokens/s', printed, re.M), printed
    assert re.search(r'^Preparation: [\d,]+ tokens a CPU second.* ratio \d+\.\d\d', printed, re.M), printed
    assert store_for(DataConfig(), log=str).manifest


def test_the_plan_is_a_switch():
    assert cli.parse(bench.BenchFlags, ['--plan'], bench.BenchFlags(), 'bench').plan
