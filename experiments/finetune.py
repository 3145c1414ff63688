"""Fine-tunes an encoder on a downstream task: `python -m experiments.finetune --init WORKDIR --task NAME ...`.

The same command again goes on where it stopped. --init WORKDIR[@STEP] is a pretraining run or an ablation, hf:DIR a
BERT, ALBERT, RoBERTa or ELECTRA that transformers saved.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from data.errors import UserError
from data.tasks.config import TaskConfig
from experiments import cli
from experiments.devices import prepare
from experiments.processes import alone
from train.finetuning.config import FinetuneConfig
from train.finetuning.grids import points, structure


@dataclass(frozen=True)
class FinetuneFlags:
    """Flags of finetune."""

    task: Annotated[TaskConfig, cli.Flat] = field(default_factory=TaskConfig)
    config: Annotated[FinetuneConfig, cli.Flat] = field(default_factory=FinetuneConfig)
    init: str = ''
    """The encoder: WORKDIR[@STEP] (its newest checkpoint if no step is named) or hf:DIR."""
    arm: str | None = None
    """Arm of the workdir. Default: the baseline."""
    seed: int | None = None
    """Pretraining seed of the workdir. Default: the first."""
    grid: Literal['', 'bert', 'roberta', 'electra'] = ''
    """Try the hyperparameters of a paper and report the best; fields given beside it stay as given."""
    workdir: Path | None = None
    """Where everything goes; the same command again goes on there."""


def main(args: list[str]) -> None:
    """Runs the command."""
    flags = cli.parse(FinetuneFlags, args, FinetuneFlags(), 'python -m experiments.finetune', __doc__)
    if flags.workdir is None:
        raise UserError('--workdir is missing: name a folder for the results')
    grid = points(flags.config, flags.grid, cli.given_flags(args))
    prepare(flags.config.run, replicas=max(Counter(map(structure, grid)).values()) * flags.config.seeds)
    alone('finetune')
    from experiments.finetuning import run  # JAX starts here, after its devices are known

    run.run_and_print(flags, grid)


if __name__ == '__main__':
    cli.run(main)
