"""What a config takes on a TPU slice, found without one: `python -m experiments.plan CONFIG --topology v5e:4x4`."""

from dataclasses import dataclass
from typing import Annotated

import tyro

from configs.scales import Scale
from experiments import cli
from experiments.ablation import Ablation
from experiments.config_file import read_command
from experiments.planning.slices import chip_of
from experiments.pretrain import only
from train.config import Config


@dataclass(frozen=True)
class PlanFlags:
    """Flags of plan. CONFIG comes first: a file of configs/."""

    config: Annotated[Config, cli.Flat]
    scale: Scale = 'paper'
    """How big the run is, as for ablate."""
    topology: tuple[str, ...] = ('v5e:4x4',)
    """Slices to compile for: v4, v5e, v5p or v6e and the number of chips each way. Several make a table."""
    seeds: int = 0
    """Seeds for each arm (0: as many as the config says)."""
    arm: str = ''
    """Plan one arm with one seed, as pretrain trains it; otherwise all, as ablate does."""
    fit: tyro.conf.UseCounterAction[int] = 0
    """Look for the largest batch that fits, too: some more compilations for each stage."""
    json: tyro.conf.UseCounterAction[int] = 0
    """Print all figures as JSON."""

    def __post_init__(self):
        if self.seeds < 0:
            raise ValueError('--seeds must be 0 or more')
        if self.arm and self.seeds > 1:
            raise ValueError('with --arm one seed is planned: leave out --arm or --seeds')
        if not [chip_of(name) for name in self.topology]:
            raise ValueError('--topology must name a slice, such as v5e:4x4')

    def narrow(self, ablation: Ablation) -> Ablation:
        """What is planned of an ablation."""
        return only(ablation, self) if self.arm else ablation


def main(args: list[str]) -> None:
    """Runs the command."""
    ablation, flags = read_command(
        args, PlanFlags, 'python -m experiments.plan', __doc__, lambda ablation, flags: flags.narrow(ablation)
    )
    from experiments.planning import plans, report  # here, since JAX is slow to import

    seeds = 1 if flags.arm else flags.seeds or ablation.seeds
    report.show(plans.plans(ablation, seeds, flags.topology, bool(flags.fit)), as_json=bool(flags.json))


if __name__ == '__main__':
    cli.run(main)
