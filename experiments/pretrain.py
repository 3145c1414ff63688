"""Trains one arm of a config with one seed: `python -m experiments.pretrain CONFIG [--arm NAME] [--seed N]`."""

import dataclasses
from dataclasses import dataclass

from experiments import cli
from experiments.ablation import Ablation
from experiments.config_file import RunFlags, default_workdir, read_command
from experiments.devices import prepare
from experiments.processes import join
from experiments.tuning import SEED


@dataclass(frozen=True)
class PretrainFlags(RunFlags):
    """Flags of pretrain."""

    arm: str = ''
    """Which arm (the baseline if not given)."""
    seed: int = 0
    """Fixes initial weights, data order and noise."""


def only(ablation: Ablation, flags: PretrainFlags) -> Ablation:
    """The ablation with the one arm that is wanted."""
    name = flags.arm or ablation.baseline
    if name not in (arms := [arm.name for arm in ablation.arms]):
        raise cli.UserError(f'--arm {name!r} is not in this config: its arms are {", ".join(map(repr, arms))}')
    return dataclasses.replace(ablation, arms=(ablation.arm(name),), baseline=name)


def main(args: list[str]) -> None:
    """Runs the command."""
    ablation, flags = read_command(args, PretrainFlags, 'python -m experiments.pretrain', __doc__, narrow=only)
    if not 0 <= flags.seed < SEED:
        raise cli.UserError(f'--seed {flags.seed}: use a number from 0 to {SEED - 1}')
    workdir = flags.workdir or default_workdir(f'{ablation.name}-{ablation.baseline}-{flags.seed}', flags.scale)
    prepare(flags.config.run, replicas=1)
    join()
    from experiments import study  # JAX starts here, after its devices are known

    study.run_and_print(ablation, flags.scale, workdir, range(flags.seed, flags.seed + 1))


if __name__ == '__main__':
    cli.run(main)
