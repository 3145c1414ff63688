"""Commands in processes of their own, and a config so small that most of a run is compilation."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SWITCH, STEPS = 24, 32
"""The step at which the second stage starts, and the last."""
TINY = f"""
import dataclasses

from data.config import DataConfig
from experiments.ablation import Ablation, Arm
from model.config import ModelConfig
from train.config import Config, EvaluationConfig, OptimizerConfig, RunConfig, Stage

BASE = Config(
    data=DataConfig(vocab_size=384, heldout_percent=25.0),
    model=ModelConfig(layers=1, width=16, heads=2, feed_forward=32, max_length=32),
    optimizer=OptimizerConfig(learning_rate=1e-2, warmup_share=0.1),
    stages=(Stage(length=16, batch_size=4, steps={SWITCH}), Stage(length=32, batch_size=2, steps={STEPS - SWITCH})),
    evaluation=EvaluationConfig(
        rates=(0.15, 0.4), rows=8, curve_every=16, curve_rows=4, batch_size=4,
        likelihood_paragraphs=2, probe_paragraphs=40, examples=1,
    ),
    run=RunConfig(log_every=4),
)
LITTLE = {{'masking.corruption_rate': 0.15}}
MUCH = {{'masking.corruption_rate': 0.4}}


def config(scale, little=LITTLE, much=MUCH):
    return Ablation('tiny', 'Nothing shows.', BASE, (Arm('15%', little), Arm('40%', much)), '15%', seeds=1)
"""
"""Two arms, one seed."""
LEAN = [
    word
    for name in ('likelihood_paragraphs', 'probe_paragraphs', 'examples', 'curve_every')
    for word in (f'--evaluation.{name}', '0')
]
"""Measures losses at the end and no more."""


@dataclass(frozen=True)
class Place:
    """A working directory with tiny.py, corpus.jsonl and its prepared store."""

    folder: Path

    @property
    def flags(self) -> list[str]:
        """The prepared corpus, and a compilation cache for all that run here."""
        return ['--data.corpus', 'files:corpus.jsonl', '--data.store', 'store', '--run.compilation-cache', 'cache']

    def run(self, command: str, *words, code: int = 0, settings: dict[str, str] | None = None, stdin: str = ''):
        """`python -m experiments.COMMAND`, which must exit with `code`; the finished process, with its output."""
        return self.python('-m', f'experiments.{command}', *words, code=code, settings=settings, stdin=stdin)

    def python(self, *words, code: int = 0, settings: dict[str, str] | None = None, stdin: str = ''):
        ran = subprocess.run(
            [sys.executable, *map(str, words)],
            cwd=self.folder,
            env={**os.environ, 'PYTHONPATH': str(ROOT), **(settings or {})},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=1800,
        )
        assert ran.returncode == code, f'exit code {ran.returncode}\n{ran.stdout}\n{ran.stderr}'
        return ran

    def ablate(self, config: str, workdir, *words, code: int = 0):
        """An ablation on the prepared corpus."""
        return self.run('ablate', config, '--workdir', workdir, *self.flags, *words, code=code)

    def write(self, name: str, *lines: str) -> str:
        """A config file beside tiny.py that builds on it; its name."""
        (self.folder / name).write_text('\n'.join(['from tiny import *', '', *lines, '']))
        return name


def contents(folder: Path, pattern: str = '**/*') -> dict[str, bytes]:
    """Every file below a folder, by its path in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob(pattern) if path.is_file()}


def one_line(text: str) -> str:
    """What a command says to a mistake: one line, without what comes before its message."""
    assert text.startswith('error: ') and text.count('\n') == 1 and text.endswith('\n'), text
    return text.removeprefix('error: ').strip()
