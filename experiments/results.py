"""Fine-tunings as one page of Markdown: `python -m experiments.results DIR [DIR ...] --out FILE.md`."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from data.errors import UserError
from experiments import cli


@dataclass(frozen=True)
class ResultsFlags:
    """Flags of results."""

    workdirs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Finished workdirs of experiments.finetune, of one encoder or several."""
    title: str = 'Fine-tuning'
    """The page's heading."""
    out: Path | None = None
    """The file that is written, over what is there. Default: the page is printed."""


def main(args: list[str]) -> None:
    """Runs the command."""
    flags = cli.parse(ResultsFlags, args, ResultsFlags(()), 'python -m experiments.results', __doc__)
    if not flags.workdirs:
        raise UserError('name a workdir: python -m experiments.results DIR [DIR ...]')
    from experiments.finetuning.page import page  # JAX starts here

    text = page(flags.title, flags.workdirs)
    if flags.out is None:
        print(text, end='')
        return
    if not flags.out.name or flags.out.is_dir():
        raise UserError(f'--out {flags.out}: name a file')
    flags.out.parent.mkdir(parents=True, exist_ok=True)
    part = flags.out.with_name(f'{flags.out.name}.part')
    part.write_text(text, encoding='utf-8')
    os.replace(part, flags.out)
    print(flags.out)


if __name__ == '__main__':
    cli.run(main)
