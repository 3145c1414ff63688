"""A fine-tuning, whole: its recipe, and how it is carried out."""

from dataclasses import dataclass, field

from train.config import RunConfig
from train.finetuning.recipe import Recipe


@dataclass(frozen=True)
class FinetuneConfig(Recipe):
    """Hyperparameters of fine-tuning, and how it is carried out."""

    evaluation_batch_size: int = 64
    """Rows predicted at once. Changes no figure."""
    run: RunConfig = field(default_factory=RunConfig)

    def __post_init__(self):
        super().__post_init__()
        if self.evaluation_batch_size < 1:
            raise ValueError(f'evaluation_batch_size is {self.evaluation_batch_size}: use 1 or more')
