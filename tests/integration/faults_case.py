"""Commands in this process, with what goes wrong put where it is wanted."""

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from experiments import cli
from experiments.load import load_replica
from train.metrics import read
from train.preemption import Preemption
from train.program import Program

PLAIN = ['--evaluation.likelihood_paragraphs', '0', '--evaluation.probe_paragraphs', '0', '--evaluation.examples', '0']
"""Measures losses alone, at the end and along the curve."""
OFTEN = ['--run.checkpoint_seconds', '0']
"""A checkpoint after every step."""
_steps: dict[Any, Any] = {}
"""Compiled once for all commands."""
_compile_step = Program.compile_step


@dataclass
class Command:
    """`experiments.NAME` in a working directory."""

    folder: Path
    patch: pytest.MonkeyPatch
    capture: Any

    def run(self, name: str, *words) -> SimpleNamespace:
        """Its exit code and what it wrote on the terminal."""
        self.patch.setattr(sys, 'argv', [f'{name}.py', *map(str, words)])
        self.capture.readouterr()
        try:
            cli.run(import_module(f'experiments.{name}').main)
            code = 0
        except SystemExit as stop:
            code = stop.code
        said = self.capture.readouterr()
        return SimpleNamespace(code=code, out=said.out, err=said.err)

    def ablate(self, config: str, workdir: str, *words) -> SimpleNamespace:
        """An ablation on the prepared corpus; its programs are compiled once."""
        store = ['--data.corpus', 'files:corpus.jsonl', '--data.store', 'store', '--run.compilation_cache', '']
        return self.run('ablate', config, '--workdir', workdir, *store, *words)

    def on(self, target: str, hook: Callable[..., None], after: bool = False) -> None:
        """Calls a hook, with the same arguments, whenever `target` is called: before it, or after."""
        module, _, name = target.rpartition('.')
        try:
            owner = import_module(module)
        except ModuleNotFoundError:
            owner = getattr(import_module(module.rpartition('.')[0]), module.rpartition('.')[2])
        real = getattr(owner, name)

        def called(*arguments, **named):
            if not after:
                hook(*arguments, **named)
            result = real(*arguments, **named)
            if after:
                hook(*arguments, **named)
            return result

        self.patch.setattr(owner, name, called)

    def terminate(self) -> None:
        """Sends SIGTERM to this process; it has been noted when this returns."""
        os.kill(os.getpid(), signal.SIGTERM)
        end = time.monotonic() + 60
        while not Watched.entered.requested:
            assert time.monotonic() < end
            time.sleep(0.001)


class Watched(Preemption):
    """Can be asked, from where a command cannot be reached, whether it has noted a signal."""

    entered: Preemption

    def __enter__(self):
        Watched.entered = self
        return super().__enter__()


def compiled_once(program: Program, stage: int) -> Any:
    """In place of `Program.compile_step`."""
    config = program.cohort.config
    key = (config.model, config.stages, config.masking, len(program.cohort.replicas), program.mesh, stage)
    if key not in _steps:
        _steps[key] = _compile_step(program, stage)
    return _steps[key]


def ended(workdir: Path) -> tuple[dict, dict]:
    """What a run came to: the weights of each arm, leaf by leaf, and every figure, without costs."""
    weights = {
        (arm, jax.tree_util.keystr(path)): np.asarray(leaf)
        for arm in ('15%', '40%')
        for path, leaf in jax.tree_util.tree_leaves_with_path(load_replica(workdir, arm, 0)[1])
    }
    fields = ('arm', 'seed', 'stage', 'step', 'metric', 'eval_rate')
    figures = {
        tuple(record.get(field) for field in fields): record['value']
        for record in read(workdir)
        if record['kind'] == 'figure'
    }
    return weights, figures


def assert_same_end(workdir: Path, reference: tuple[dict, dict], arms=('15%', '40%')) -> None:
    """The same bits."""
    weights, figures = ended(workdir)
    for name, leaf in reference[0].items():
        if name[0] in arms:
            np.testing.assert_array_equal(weights[name], leaf, err_msg=str(name))
    for name, value in reference[1].items():
        if name[0] in (*arms, ''):
            assert figures[name] == value, name
