"""Rebuilds an ablation's report from its workdirs, without a model: `python -m experiments.report DIR [DIR ...]`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from experiments import cli
from experiments.reporting import write_report


@dataclass(frozen=True)
class ReportFlags:
    """Flags of report."""

    workdirs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Workdirs of one ablation. Several, with the same config and other seeds, are pooled."""
    out: Path | None = None
    """Where the report goes. Default: the workdir; for several, the first one's name with _pooled."""


def main(args: list[str]) -> None:
    """Runs the command."""
    flags = cli.parse(ReportFlags, args, ReportFlags(()), 'python -m experiments.report', __doc__)
    if not flags.workdirs:
        raise cli.UserError('name a workdir: python -m experiments.report DIR [DIR ...]')
    first = flags.workdirs[0].resolve()
    out = flags.out or (first if len(flags.workdirs) == 1 else first.with_name(f'{first.name}_pooled'))
    print(write_report(flags.workdirs, out), end='')
    print(f'\n{out / "report.html"}')


if __name__ == '__main__':
    cli.run(main)
