"""How fast it is: our step beside PyTorch's, an ablation beside its replicas one by one, the loader, the start."""

import os
from dataclasses import dataclass, field

from experiments import cli
from experiments.devices import prepare
from train.config import RunConfig

PARTS = ('step', 'ablation', 'loader', 'startup')


@dataclass(frozen=True)
class BenchFlags:
    """Flags of bench."""

    sizes: tuple[str, ...] = ('tiny', 'mini')
    """Sizes of BERT (model/config.py)."""
    lengths: tuple[int, ...] = (128, 512)
    """Tokens a row; 4,096 tokens a step at each."""
    rates: tuple[float, ...] = (0.15, 0.40)
    """Masking rates."""
    pairs: int = 5
    """Turns of each side."""
    only: tuple[str, ...] = field(default=PARTS)
    """Parts to time: step, ablation, loader, startup."""


def main(args: list[str]) -> None:
    """Runs the command."""
    flags = cli.parse(BenchFlags, args, BenchFlags(), 'python -m experiments.bench', __doc__)
    if unknown := [part for part in flags.only if part not in PARTS]:
        raise cli.UserError(f'--only {unknown[0]}: use {", ".join(PARTS)}')
    if flags.pairs < 1:
        raise cli.UserError(f'--pairs {flags.pairs}: use 1 or more')
    cores = os.cpu_count() or 1
    prepare(RunConfig(), replicas=cores)
    from experiments.benching import report  # JAX starts here, after its devices are known

    report.print_all(flags, cores)


if __name__ == '__main__':
    cli.run(main)
