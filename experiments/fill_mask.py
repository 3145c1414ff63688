"""Asks a trained replica what stands at each [MASK] of a text.

python -m experiments.fill_mask --workdir DIR [--arm NAME] [--seed N] "The [MASK] of the Union"
"""

from dataclasses import dataclass
from pathlib import Path

import tyro

from data.errors import UserError
from experiments import cli
from experiments.devices import prepare
from train.config import RunConfig

MASK = '[MASK]'


@dataclass(frozen=True)
class FillMaskFlags:
    """Flags of fill_mask."""

    text: tyro.conf.Positional[str] = ''
    """A text with one or more [MASK]; each stands for one piece of the vocabulary."""
    workdir: Path | None = None
    """Workdir of an ablation or a pretraining run."""
    arm: str | None = None
    """Arm to ask. Default: the baseline."""
    seed: int | None = None
    """Seed to ask. Default: the first."""
    top: int = 5
    """Guesses for each [MASK]."""


def main(args: list[str]) -> None:
    """Runs the command."""
    flags = cli.parse(FillMaskFlags, args, FillMaskFlags(), 'python -m experiments.fill_mask', __doc__)
    if flags.workdir is None:
        raise UserError('--workdir is missing: name the workdir of a run')
    if flags.top < 1:
        raise UserError(f'--top is {flags.top}: use 1 or more')
    if MASK not in flags.text:
        raise UserError(f'the text {flags.text!r} has no {MASK}: put one where a piece is to be guessed')
    prepare(RunConfig(compilation_cache=''), replicas=1)
    from experiments import filling, load  # JAX starts here

    config, params, tokenizer, *_ = load.load_replica(flags.workdir, flags.arm, flags.seed)
    for number, guesses in enumerate(filling.fill(config, params, tokenizer, flags.text, flags.top), 1):
        print(f'{MASK} {number}')
        for guess in guesses:
            print(f'  {100 * guess.probability:5.1f}%  {guess.piece:<16} {guess.text}')


if __name__ == '__main__':
    cli.run(main)
