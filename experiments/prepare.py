"""Prepares a corpus as a token store: `python -m experiments.prepare --corpus SPEC --out DIR`."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from data.config import DataConfig
from data.files import is_remote
from data.prepare import default_folder, prepare, prepare_remote
from data.preparing.beam_runner import beam_runner
from data.preparing.runners import all_cores
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
    runner: str = ''
    """Hand the work to this runner of Apache Beam, DirectRunner or DataflowRunner (empty: a process a core)."""
    beam_flag: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """A flag for Beam, --beam_flag=--region=us-west4; may be given more than once (docs/preparation.md)."""

    def __post_init__(self):
        try:
            super().__post_init__()
        except ValueError as error:
            raise ValueError(str(error).replace('data.', '--', 1)) from None


def main(args: list[str]) -> None:
    """Runs the command."""
    flags = cli.parse(PrepareFlags, args, PrepareFlags(), 'python -m experiments.prepare', __doc__)
    if flags.beam_flag and not flags.runner:
        raise cli.UserError(f'--beam_flag {flags.beam_flag[0]}: name a --runner that takes it')
    run = beam_runner(flags.runner, flags.beam_flag) if flags.runner else all_cores
    if not is_remote(flags.out):
        prepare(flags, flags.out or default_folder(flags), bool(flags.overwrite), run=run)
    elif flags.runner and not flags.overwrite:
        prepare_remote(flags, flags.out, run)
    else:
        raise cli.UserError(f'--out {flags.out}: a bucket is written by a --runner, and never over what is there')


if __name__ == '__main__':
    cli.run(main)
