"""Which replicas can train in one program: those that differ in traced numbers alone."""

import dataclasses
from dataclasses import dataclass

from train.config import Config, MaskingConfig, OptimizerConfig, RunConfig
from train.rates import copies

CONTROL = ' (A/A)'
"""Ends the name of an arm that differs from the one before it in masks alone."""
MAJORITY, TFIDF, RANDOM = 'majority class', 'TF-IDF', 'random initialisation'
REFERENCES = (MAJORITY, TFIDF, RANDOM)
"""In the place of an arm: what is measured of downstream tasks without pretraining."""


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


def units_of(cohort: Cohort) -> frozenset[str]:
    """Names of the units that its arms mask by."""
    return frozenset(replica.config.masking.unit for replica in cohort.replicas)


def cohorts(replicas: list[Replica], baseline: str, slots: int = 1, first: int = 0) -> list[Cohort]:
    """Replicas grouped by structure, in the order in which the structures appear; named by numbers from `first`.

    Args:
      slots: groups of devices along mesh axis `arm`, of which a cohort uses at most one a replica. Where they do not
        divide a cohort, A/A controls fill it up, at most one for each replica of the baseline (where it is elsewhere,
        of the cohort): they cost no time.
    """
    groups: dict[tuple[Config, int], list[Replica]] = {}
    for replica in replicas:
        groups.setdefault(structure(replica.config), []).append(replica)
    found = []
    for group in groups.values():
        twins = [replica for replica in group if replica.arm == baseline] or group
        groups_of_devices = range(1, min(slots, len(group)) + 1)
        side_by_side = max(n for n in groups_of_devices if slots % n == 0 and -len(group) % n <= len(twins))
        controls = map(control, twins[: -len(group) % side_by_side])
        found.append(Cohort(str(first + len(found)), (*group, *controls)))
    return found


def control(twin: Replica) -> Replica:
    """The same arm and seed with other masks, which no arm has: what chance alone makes of it."""
    masking = dataclasses.replace(twin.config.masking, noise=twin.config.masking.noise + 1_000_000)
    return Replica(f'{twin.arm}{CONTROL}', twin.seed, dataclasses.replace(twin.config, masking=masking))
