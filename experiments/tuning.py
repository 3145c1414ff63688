"""`--grid FIELD=V1,V2`: each arm at the value that was best on a seed outside the table."""

import math
from dataclasses import dataclass
from typing import Any

from data.errors import UserError
from experiments.ablation import Ablation
from experiments.config_paths import changed
from experiments.known_metrics import known
from train.config import Config

SEED = 1_000_000
"""The tuning seed: no table has so many seeds."""
NOT_CROSSED = ('data.', 'run.', 'evaluation.', 'model.vocab_size', 'masking.noise', 'optimizer.micro_batches')
"""All runs of an ablation read one store and are measured alike; the last two change results by chance alone."""


@dataclass(frozen=True)
class Grid:
    """One field and the values that every arm is crossed with."""

    field: str
    values: tuple[Any, ...]

    @classmethod
    def parse(cls, text: str) -> 'Grid':
        """From `optimizer.learning_rate=1e-4,3e-4`.

        Raises:
          UserError: not of that form, or fewer than two values.
        """
        field, _, values = text.partition('=')
        try:
            parsed = tuple(_number(value) for value in values.split(','))
        except ValueError:
            raise UserError(f'--grid {text}: write it as FIELD=NUMBER,NUMBER') from None
        if len({f'{value:g}' for value in parsed}) < max(2, len(parsed)):
            raise UserError(f'--grid {text}: give at least two values, all different in their first six digits')
        return cls(field.replace('-', '_'), parsed)

    def name(self, arm: str, value: Any) -> str:
        """What an arm at one value is called."""
        return f'{arm} @ {self.field}={value:g}'

    def check(self, ablation: Ablation) -> None:
        """Raises UserError where arms have equal FLOPs and the field might undo that."""
        has_equal_flops = any(arm.at_flops_of is not None for arm in ablation.arms)
        if has_equal_flops and not self.field.startswith('optimizer.'):
            raise UserError(
                f'--grid {self.field}: arms have equal FLOPs, which it could undo; name an optimizer.* field'
            )

    def crossed(self, configs: dict[str, Config]) -> dict[str, Config]:
        """Every arm at every value.

        Raises:
          UserError: the field does not exist, is none to choose by, or refuses a value, or the arms differ in nothing
            else.
        """
        if self.field.startswith(NOT_CROSSED):
            raise UserError(f'--grid {self.field}: it cannot be chosen by result; name a field such as optimizer.*')
        try:
            crossed = {
                self.name(arm, value): changed(config, {self.field: value})
                for arm, config in configs.items()
                for value in self.values
            }
        except ValueError as error:
            raise UserError(f'--grid {self.field}: {error}') from None
        if len({config.stages[-1].length for config in crossed.values()}) > 1:
            raise UserError(f'--grid {self.field}: the last stage has the length at which all arms are evaluated')
        if len(set(crossed.values())) < len(crossed):
            raise UserError(f'--grid {self.field}: some arms differ in nothing else: name another field')
        return crossed

    def chosen(self, records: list[dict], arms: list[str], ablation: Ablation) -> dict[str, Any]:
        """config.json's entry: for each arm the score of each value by the primary metric, and the best value.

        Raises:
          UserError: every value of an arm failed.
        """
        scores: dict[str, dict[str, float]] = {arm: {} for arm in arms}
        names = {self.name(arm, value): (arm, value) for arm in arms for value in self.values}
        for record in records:
            scored = record['kind'] == 'figure' and record['metric'] == ablation.primary and record['value'] is not None
            if scored and record['arm'] in names and record['eval_rate'] in (None, ablation.primary_rate):
                arm, value = names[record['arm']]
                scores[arm][f'{value:g}'] = record['value']
        sign = -1 if known(ablation.primary).higher_is_better else 1
        best = {}
        for arm in arms:
            if not scores[arm]:
                raise UserError(f'--grid {self.field}: arm {arm} failed at every value: try smaller ones')
            best[arm] = min(
                (v for v in self.values if f'{v:g}' in scores[arm]), key=lambda v: sign * scores[arm][f'{v:g}']
            )
        return {
            'field': self.field,
            'values': list(self.values),
            'chosen': best,
            'tuning_seed': SEED,
            'scores': scores,
        }


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        if math.isfinite(number := float(text)):
            return number
        raise
