"""What a config takes on a TPU slice, found without one: `python -m experiments.plan CONFIG --topology v5e:4x4`."""

import json
import sys
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import tyro

from configs.scales import Scale
from experiments import cli
from experiments.config_file import read_command
from experiments.devices import prepare_for_topologies
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
        if self.seeds < 0 or not all(map(chip_of, self.topology)):
            raise ValueError(f'--seeds {self.seeds}: use 0 or more')


def main(args: list[str]) -> None:
    """Runs the command."""
    narrow = lambda ablation, flags: only(ablation, flags) if flags.arm else ablation  # noqa: E731
    ablation, flags = read_command(args, PlanFlags, 'python -m experiments.plan', __doc__, narrow)
    prepare_for_topologies()
    from experiments.planning import plans, report  # JAX starts here, told to look for no TPU

    seeds, log = 1 if flags.arm else flags.seeds or ablation.seeds, partial(print, file=sys.stderr)
    found = []
    for plan in plans.plans(ablation, seeds, flags.topology, bool(flags.fit), log):
        found.append(plan)
        if not flags.json:
            print(report.text(plan), flush=True)
    print(json.dumps(report.as_json(found), indent=1) if flags.json else report.closing(found))


if __name__ == '__main__':
    cli.run(main)
