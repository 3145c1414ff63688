"""How an encoder is fine-tuned on a task."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Recipe:
    """Hyperparameters of fine-tuning (Devlin et al. 2019, Appendix A.3), and how runs of it are chosen between."""

    batch_size: int = 32
    """Rows a step, B."""
    learning_rate: float = 5e-5
    """Peak learning rate."""
    epochs: int = 3
    """Times that every training row is seen."""
    warmup_share: float = 0.1
    """Share of the steps in which the learning rate rises; then it falls linearly to 0."""
    beta2: float = 0.999
    """Decay of AdamW's second moment; that of the first is 0.9."""
    weight_decay: float = 0.01
    """Decoupled weight decay of kernels and embeddings."""
    layerwise_decay: float = 1.0
    """Each layer's learning rate as a multiple of that of the layer above it (Clark et al. 2020, Appendix B)."""
    clip_norm: float = 1.0
    """Gradients are scaled down to this global norm (0: never)."""
    max_length: int = 128
    """Tokens a row at most, and at most what the encoder was pretrained on; rows are padded to 16, 32, 64 and so on."""
    stride: int = 64
    """span: tokens between the starts of two windows of a passage."""
    train_rows: int = 0
    """Train on so many examples, chosen at random, the same for all seeds (0: on all)."""
    features: int = 0
    """0: the whole encoder is trained. Otherwise it is frozen, and the head reads so many of its last layers."""
    seeds: int = 1
    """Fine-tuning seeds: each draws its own head, order of rows and dropout. They run in one program."""
    first_seed: int = 0
    """The fine-tuning seeds count up from here."""
    select_on: Literal['train', 'dev'] = 'train'
    """Where early stopping and grids choose: on a slice of train, which is then not trained on, or on dev (as BERT)."""
    slice_percent: float = 10.0
    """Size of that slice of train."""
    patience: int = 0
    """Early stopping: stop after so many epochs without a better score and keep the best epoch's weights (0: never)."""

    def __post_init__(self):
        for name in ('batch_size', 'epochs', 'seeds', 'stride'):
            if getattr(self, name) < 1:
                raise ValueError(f'{name} is {getattr(self, name)}: use 1 or more')
        for name in ('train_rows', 'features', 'patience', 'first_seed'):
            if getattr(self, name) < 0:
                raise ValueError(f'{name} is {getattr(self, name)}: use 0 or more')
        for name in ('learning_rate', 'weight_decay', 'clip_norm'):
            if not 0 <= getattr(self, name) < float('inf'):
                raise ValueError(f'{name} is {getattr(self, name)}: use 0 or more')
        if not 0 <= self.warmup_share <= 1:
            raise ValueError(f'warmup_share is {self.warmup_share}: use a share between 0 and 1')
        if not 0 <= self.beta2 < 1:
            raise ValueError(f'beta2 is {self.beta2}: use a number from 0 to below 1')
        if not 0 < self.layerwise_decay <= 1:
            raise ValueError(f'layerwise_decay is {self.layerwise_decay}: use a number above 0 and up to 1')
        if not 0 < self.slice_percent < 100:
            raise ValueError(f'slice_percent is {self.slice_percent}: use a number between 0 and 100')
        if self.max_length < 8:
            raise ValueError(f'max_length is {self.max_length}: use 8 or more')
        if self.first_seed + self.seeds > 2**31:
            raise ValueError(f'first_seed is {self.first_seed}: fine-tuning seeds end below 2**31')

    @property
    def ft_seeds(self) -> tuple[int, ...]:
        return tuple(range(self.first_seed, self.first_seed + self.seeds))
