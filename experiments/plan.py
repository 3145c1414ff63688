"""What a config takes on a TPU slice, found without one: `python -m experiments.plan CONFIG --topology v5e:4x4`."""

import json
import sys
from dataclasses import dataclass

import tyro

from configs.scales import Scale
from experiments import cli
from experiments.ablation import Ablation
from experiments.config_file import RunFlags, read_command
from experiments.devices import prepare_for_topologies
from experiments.pretrain import only


@dataclass(frozen=True)
class PlanFlags(RunFlags):
    """Flags of plan."""

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


def main(args: list[str]) -> None:
    """Runs the command."""

    def narrow(ablation: Ablation, flags: PlanFlags) -> Ablation:
        return only(ablation, flags) if flags.arm else ablation

    ablation, flags = read_command(args, PlanFlags, 'python -m experiments.plan', __doc__, narrow)
    if flags.seeds < 0:
        raise cli.UserError(f'--seeds {flags.seeds}: use 0 or more')
    prepare_for_topologies()
    from experiments.planning import plans, report  # JAX starts here, after it knows that it is to look for no TPU

    seeds = 1 if flags.arm else flags.seeds or ablation.seeds
    found = []
    for plan in plans.plans(ablation, seeds, flags.topology, bool(flags.fit), _say):
        found.append(plan)
        if not flags.json:
            print(report.text(plan), flush=True)
    print(json.dumps(report.as_json(found), indent=1) if flags.json else report.closing(found))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == '__main__':
    cli.run(main)
