"""Prepares a corpus as a token store: `python -m experiments.prepare --corpus SPEC --out DIR`."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from data.config import DataConfig
from data.prepare import default_folder, prepare
from experiments import cli


@dataclass(frozen=True)
class PrepareFlags(DataConfig):
    """Flags of prepare."""

    store: Annotated[str, tyro.conf.Suppress] = ''
    max_train_tokens: Annotated[int, tyro.conf.Suppress] = 0
    out: str = ''
    """Folder of the store (empty: where a run with these options looks for it, in runs/stores/)."""
    overwrite: tyro.conf.UseCounterAction[int] = 0
    """Make it anew, in place of a store made with other options."""


def main(args: list[str]) -> None:
    """Runs the command."""
    flags = cli.parse(PrepareFlags, args, PrepareFlags(), 'python -m experiments.prepare', __doc__)
    prepare(flags, flags.out or default_folder(flags), bool(flags.overwrite))


if __name__ == '__main__':
    cli.run(main)
