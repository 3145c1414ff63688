"""Trains every arm of an ablation with several seeds and reports: `python -m experiments.ablate CONFIG`."""

from dataclasses import dataclass

from experiments import cli
from experiments.config_file import RunFlags, default_workdir, read_command
from experiments.devices import prepare
from experiments.processes import join
from experiments.tuning import SEED, Grid


@dataclass(frozen=True)
class AblateFlags(RunFlags):
    """Flags of ablate."""

    seeds: int = 0
    """Seeds for each arm (0: as many as the config says). More than before trains only what is new."""
    first_seed: int = 0
    """The seeds count up from here: workdirs with other seeds can be pooled by `experiments.report`."""
    grid: str = ''
    """FIELD=V1,V2: cross the arms with values, and report each arm at the value best for it on a tuning seed."""


def main(args: list[str]) -> None:
    """Runs the command."""
    ablation, flags = read_command(args, AblateFlags, 'python -m experiments.ablate', __doc__)
    seeds = range(flags.first_seed, flags.first_seed + (flags.seeds or ablation.seeds))
    if flags.seeds < 0 or seeds.start < 0 or seeds.stop > SEED:
        raise cli.UserError(
            f'--seeds {flags.seeds} --first_seed {flags.first_seed}: use 0 or more; seeds end below {SEED}'
        )
    grid = Grid.parse(flags.grid) if flags.grid else None
    if grid:
        if ablation.primary_task:
            raise cli.UserError(
                f'--grid chooses by the primary measure, and {ablation.primary_task} is scored on what is reported: '
                'tune with a config that has another primary'
            )
        grid.check(ablation)
        grid.crossed({arm.name: ablation.config(arm.name) for arm in ablation.arms})  # refuses what cannot be
    prepare(flags.config.run, replicas=len(ablation.arms) * len(seeds))
    join()
    from experiments import study  # JAX starts here, after its devices are known

    workdir = flags.workdir or default_workdir(ablation.name, flags.scale)
    study.run_and_print(ablation, flags.scale, workdir, seeds, grid)


if __name__ == '__main__':
    cli.run(main)
