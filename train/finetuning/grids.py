"""Grids of hyperparameters that papers chose from, and their points."""

import dataclasses
import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from train.finetuning.config import FinetuneConfig


@dataclass(frozen=True)
class Grid:
    """Values to cross, and what else belongs to the recipe."""

    values: Mapping[str, tuple]
    changes: Mapping[str, Any]


GRIDS = {
    # Devlin et al. 2019, Appendix A.3.
    'bert': Grid(
        values={'batch_size': (16, 32), 'learning_rate': (5e-5, 3e-5, 2e-5), 'epochs': (2, 3, 4)},
        changes={},
    ),
    # Liu et al. 2019, Table 10 and Section 5: early stopping on the task's own measure.
    'roberta': Grid(
        values={'batch_size': (16, 32), 'learning_rate': (1e-5, 2e-5, 3e-5)},
        changes={
            'epochs': 10,
            'patience': 10,
            'beta2': 0.98,
            'weight_decay': 0.1,
            'warmup_share': 0.06,
            'clip_norm': 0.0,
        },
    ),
    # Clark et al. 2020, Appendix B, base-sized models. RTE and STS-B take 10 epochs there: give --epochs 10.
    'electra': Grid(
        values={'learning_rate': (3e-5, 5e-5, 1e-4, 1.5e-4), 'layerwise_decay': (0.9, 0.8, 0.7)},
        changes={'batch_size': 32, 'epochs': 3, 'weight_decay': 0.0, 'warmup_share': 0.1},
    ),
}


def points(config: FinetuneConfig, grid: str, given: Collection[str] = ()) -> list[FinetuneConfig]:
    """The configs of a grid's points, or the one config where `grid` is ''.

    Args:
      given: fields that are set as they are: the grid leaves them alone.
    """
    if not grid:
        return [config]
    changes = {name: value for name, value in GRIDS[grid].changes.items() if name not in given}
    values = {name: each for name, each in GRIDS[grid].values.items() if name not in given}
    return [
        dataclasses.replace(config, **changes, **dict(zip(values, point, strict=True)))
        for point in itertools.product(*values.values())
    ]


TRACED = ('learning_rate', 'weight_decay', 'layerwise_decay')
"""What the points of one program may differ in."""


def structure(config: FinetuneConfig) -> FinetuneConfig:
    """Equal for two points if and only if they can run in one program."""
    default = FinetuneConfig()
    return dataclasses.replace(config, **{name: getattr(default, name) for name in TRACED})


def label(config: FinetuneConfig) -> str:
    """A point in words: what grids vary."""
    decay = f', layer-wise decay {config.layerwise_decay:g}' if config.layerwise_decay != 1 else ''
    epochs = f'{config.epochs} epoch' + ('s' if config.epochs > 1 else '')
    return f'batch {config.batch_size}, learning rate {config.learning_rate:g}, {epochs}{decay}'
