"""Which replicas can train in one program: those that differ in traced numbers alone."""

import dataclasses
from dataclasses import dataclass

from train.config import Config, MaskingConfig, OptimizerConfig, RunConfig
from train.rates import copies


@dataclass(frozen=True)
class Replica:
    """One arm with one seed."""

    arm: str
    seed: int
    config: Config


@dataclass(frozen=True)
class Cohort:
    """Replicas that train together, in the order of the state's replica axis."""

    name: str
    replicas: tuple[Replica, ...]

    @property
    def config(self) -> Config:
        """A config that stands for all where they do not differ."""
        return self.replicas[0].config

    @property
    def seeds(self) -> tuple[int, ...]:
        """Each seed once, in order: the slices of a batch."""
        return tuple(sorted({replica.seed for replica in self.replicas}))

    def __post_init__(self):
        structures = {structure(replica.config) for replica in self.replicas}
        if len(structures) != 1:
            raise ValueError(f'cohort {self.name} mixes {len(structures)} structures')


def structure(config: Config) -> tuple[Config, int]:
    """What the compiled program depends on: equal for two arms if and only if they can share one.

    Traced numbers (see `Settings`) are set to their defaults, and so is how the run is carried out.
    """
    traced = ('learning_rate', 'schedule', 'warmup_share', 'decay_share', 'weight_decay')
    default = OptimizerConfig()
    plain = dataclasses.replace(
        config,
        masking=MaskingConfig(),
        optimizer=dataclasses.replace(config.optimizer, **{name: getattr(default, name) for name in traced}),
        stages=tuple(
            dataclasses.replace(stage, restart=False, peak_scale=1.0, warmup_share=None) for stage in config.stages
        ),
        run=RunConfig(),
    )
    return plain, copies(config.masking)


def cohorts(replicas: list[Replica], first: int = 0) -> list[Cohort]:
    """Replicas grouped by structure, in the order in which the structures appear; named by numbers from `first`."""
    groups: dict[tuple[Config, int], list[Replica]] = {}
    for replica in replicas:
        groups.setdefault(structure(replica.config), []).append(replica)
    return [Cohort(str(first + i), tuple(group)) for i, group in enumerate(groups.values())]
