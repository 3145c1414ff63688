"""Runs a fine-tuned model on the lines of standard input: `python -m experiments.predict --workdir DIR < FILE`.

A line is a sentence; a pair of sentences with a tab between them; words with spaces between them (tagging); or a
question, a tab and a passage (span). For each comes one line: the label with its probability; a number; the tags; or
the answer, empty for none.
"""

import io
import sys
from dataclasses import dataclass
from pathlib import Path

from data.errors import UserError
from experiments import cli
from experiments.devices import prepare
from train.config import RunConfig


@dataclass(frozen=True)
class PredictFlags:
    """Flags of predict."""

    workdir: Path | None = None
    """Workdir of experiments.finetune."""
    seed: int | None = None
    """Fine-tuning seed. Default: the first."""
    batch_size: int = 64
    """Lines taken at once."""


def main(args: list[str]) -> None:
    """Runs the command."""
    flags = cli.parse(PredictFlags, args, PredictFlags(), 'python -m experiments.predict', __doc__)
    if flags.workdir is None:
        raise UserError('--workdir is missing: name the workdir of a fine-tuning')
    if flags.batch_size < 1:
        raise UserError(f'--batch_size is {flags.batch_size}: use 1 or more')
    prepare(RunConfig(compilation_cache=''), replicas=1)
    from experiments.finetuning import answering  # JAX starts here

    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding='utf-8', errors='strict')
    try:
        for line in answering.answers(flags.workdir, flags.seed, sys.stdin, flags.batch_size):
            print(line, flush=True)
    except UnicodeDecodeError as error:
        raise UserError(f'standard input is not UTF-8: {error.reason}') from None


if __name__ == '__main__':
    cli.run(main)
