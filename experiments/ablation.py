"""What a config file states: a claim, its arms, and how they are compared."""

import dataclasses
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from experiments.config_paths import changed, differences, overlap
from experiments.equal_flops import matched
from experiments.field_types import check_fields
from experiments.known_metrics import METRICS, known, of_kind
from train.cohort import CONTROL, REFERENCES
from train.config import Config


@dataclass(frozen=True)
class Arm:
    """One setting under comparison: a name and what it changes in the base config."""

    name: str
    changes: dict[str, Any] = field(default_factory=dict)
    """Dotted field -> value, such as {'masking.corruption_rate': 0.4}."""
    at_flops_of: dict[str, Any] | None = None
    """Changes of the base, too: the arm has as many steps as the training FLOPs of that run pay for."""


@dataclass(frozen=True)
class Published:
    """One published figure to stand beside ours, from another scale."""

    arm: str
    metric: str
    """What the paper measured, such as 'MNLI-m'."""
    value: float
    source: str
    """Such as 'Wettig et al. 2023, README table, large, dev'."""


@dataclass(frozen=True)
class Ablation:
    """The arms that share a base config, and the comparison fixed beforehand."""

    name: str
    claim: str
    """One sentence: what the paper says and this ablation puts to the test."""
    base: Config
    arms: tuple[Arm, ...]
    baseline: str
    """Name of the arm that the others are compared with."""
    seeds: int = 3
    """Seeds 0 to seeds - 1, each with every arm."""
    primary: str = 'loss'
    """Metric whose differences are corrected for multiple comparisons; losses at primary_rate."""
    primary_rate: float = 0.15
    """Evaluation rate of a primary metric that has one."""
    primary_task: str | None = None
    """Of evaluation.tasks, the one that the primary metric is measured on."""
    comparison: Literal['paired', 'welch'] = 'paired'
    """Which test counts for the primary metric."""
    all_pairs: bool = False
    """Compare every pair of arms, not only each with the baseline (A/A controls)."""
    published: tuple[Published, ...] = ()
    overrides: dict[str, Any] = field(default_factory=dict)
    """Fields given on the command line: they win over the arms' own."""

    def __post_init__(self):
        check_fields(Ablation, {f.name: getattr(self, f.name) for f in dataclasses.fields(self)})
        if not self.name.strip('.') or {'/', '\\', '\0'} & set(self.name):
            raise ValueError(f'name {self.name!r}: a folder is called by it, so use other characters')
        names = [arm.name for arm in self.arms]
        if len(set(names)) != len(names) or not names:
            raise ValueError(f'arms {names}: give at least one, each with a name of its own')
        for name in names:
            if not name.strip() or not name.isprintable() or name.endswith(CONTROL) or name in REFERENCES:
                others = ' and is none of ' + ', '.join(REFERENCES)
                raise ValueError(f'arm {name!r}: use a name of one line that does not end in {CONTROL!r}{others}')
        if self.baseline not in names:
            raise ValueError(f'baseline {self.baseline!r} is not an arm; the arms are {", ".join(names)}')
        if self.seeds < 1:
            raise ValueError(f'seeds is {self.seeds}: use 1 or more')
        self._check_primary()
        self._check_overrides()
        same: dict[Config, str] = {}
        for name in names:
            base, here = self.config(self.baseline), self.config(name)
            other = [path for path in differences(base, here) if path.startswith(('data.', 'evaluation.', 'run.'))]
            if base.stages[-1].length != here.stages[-1].length:
                other.append("the last stage's length")
            if other:
                raise ValueError(
                    f'arm {name!r} changes {other[0]}: arms read one corpus, and are carried out and evaluated alike'
                )
            rates = self.config(name).evaluation.rates
            if self.primary_task is None and known(self.primary).kind == 'common' and self.primary_rate not in rates:
                raise ValueError(
                    f'primary_rate {self.primary_rate:g} is none of evaluation.rates {rates}: arm {name!r} would have '
                    f'no {self.primary} to compare'
                )
            twin = same.setdefault(self.config(name), name)
            if twin != name:
                changes = {*self.arm(twin).changes, *self.arm(name).changes}
                given = [f'--{path}' for path in self.overrides if any(map(partial(overlap, path), changes))]
                left = ', '.join(given) or 'their changes'
                raise ValueError(f'arms {twin!r} and {name!r} are the same run: {left} leave no difference')

    def _check_primary(self) -> None:
        can_be = [name for name, metric in of_kind('common', 'whole', 'task').items()]
        if self.primary not in can_be:
            why = 'is measured at each arm’s own rate' if self.primary in METRICS else 'is no metric'
            raise ValueError(f'primary {self.primary!r} {why}: use {", ".join(can_be)}')
        tasks = [evaluation.title for evaluation in self.base.evaluation.tasks]
        if self.primary_task is not None and self.primary_task not in tasks:
            has = f'they are {", ".join(tasks)}' if tasks else 'there are none'
            raise ValueError(f'primary_task {self.primary_task!r} is not among evaluation.tasks; {has}')
        if self.primary_task is None and known(self.primary).kind == 'task':
            raise ValueError(f'primary {self.primary!r} is measured on a task: name it as primary_task')
        if self.primary in ('probe', 'likelihood') and len(self.arms) > 1:
            paragraphs = f'{self.primary}_paragraphs'
            if not getattr(self.config(self.baseline).evaluation, paragraphs):
                raise ValueError(f'evaluation.{paragraphs} is 0, but {self.primary} is the primary measure')
        unpaired = [arm.name for arm in self.arms if not self.config(arm.name).objective.judges_pairs]
        if unpaired and known(self.primary).needs_pairs:
            raise ValueError(
                f'primary {self.primary!r} needs a head for pairs, and the objective of arm {unpaired[0]!r} trains '
                'none: use loss, probe, or a task with primary_task'
            )
        headless = [arm.name for arm in self.arms if not self.config(arm.name).objective.predicts]
        if headless and self.primary_task is None and known(self.primary).needs_head:
            raise ValueError(
                f'primary {self.primary!r} needs an MLM head, and the objective of arm {headless[0]!r} trains none: '
                'use probe, or a task with primary_task'
            )

    def _check_overrides(self) -> None:
        """A field of the objective that the command line sets and no arm reads would be a silent mistake."""
        changes = [changes for arm in self.arms for changes in (arm.changes, arm.at_flops_of) if changes is not None]
        objectives = [changed(changed(self.base, each), self.overrides).objective for each in changes]
        for path in self.overrides:
            section, _, name = path.partition('.')
            if section == 'objective' and not any(each.reads(name.partition('.')[0]) for each in objectives):
                named = ', '.join(sorted({each.name for each in objectives}))
                raise ValueError(f'--{path}: no arm reads it; their objective.name is {named}')

    def arm(self, name: str) -> Arm:
        for arm in self.arms:
            if arm.name == name:
                return arm
        raise ValueError(f'no arm {name!r}; the arms are {", ".join(arm.name for arm in self.arms)}')

    def config(self, arm: str) -> Config:
        """The run config of an arm: the base, then the arm's changes, then the command line's; its steps last."""
        stated = self.arm(arm)
        config = changed(changed(self.base, stated.changes), self.overrides)
        if stated.at_flops_of is None:
            return config
        like = changed(changed(self.base, stated.at_flops_of), self.overrides)
        return dataclasses.replace(config, stages=matched(config, like))
