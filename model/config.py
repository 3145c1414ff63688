"""The encoder's shape, and that of a generator beside it."""

from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class ModelConfig:
    """A BERT encoder (Devlin et al. 2019), its pre-LN form, or one with rotary positions."""

    layers: int = 2
    """Number of Transformer layers, N."""
    width: int = 128
    """Hidden width, D."""
    heads: int = 2
    """Attention heads, H; the head width K is D / H."""
    feed_forward: int = 512
    """Width of the feed-forward layer, F."""
    norm: Literal['post', 'pre'] = 'post'
    """Where LayerNorm sits: post (BERT) or pre (Wettig et al., 24hBERT; one more norm at the end)."""
    positions: Literal['learned', 'rotary'] = 'learned'
    """Learned absolute positions (BERT) or rotary (Su et al. 2021)."""
    max_length: int = 512
    """Rows of the learned position table: the longest length any stage will use."""
    type_vocab_size: int = 2
    """Rows of the token-type table."""
    dropout: float = 0.1
    """Dropout of embeddings and of each sub-layer's output."""
    attention_dropout: float = 0.1
    """Dropout of attention weights."""
    attend: Literal['row', 'document'] = 'row'
    """What a token may attend to: its whole row (RoBERTa's full sentences) or its own document in it."""
    window: int = 0
    """How many tokens to each side a token attends to; 0: as far as its row or document goes."""
    attention: Literal['xla', 'splash', 'cudnn'] = 'xla'
    """Kernel of attention: XLA's own products, Splash on TPU, cuDNN on GPU; elsewhere both stand for xla."""
    norm_epsilon: float = 1e-12
    """Added to the variance in LayerNorm."""
    init_stddev: float = 0.02
    """Standard deviation of the truncated normal that weights are drawn from."""
    scan_layers: bool = True
    """One compiled layer, scanned; otherwise unrolled. The parameters are the same."""
    remat: bool = False
    """Recompute each layer's activations in the backward pass."""
    dtype: Literal['float32', 'bfloat16'] = 'float32'
    """Compute type; parameters, norms' statistics, softmax and logits are float32 always."""
    embedding_width: int = 0
    """Width of the tables of embeddings, E, which are then projected to D (ALBERT, ELECTRA-small); 0: D."""
    layers_share: Literal['none', 'attention', 'feed_forward', 'all'] = 'none'
    """What all layers have one set of weights for (ALBERT): no part of a layer, one with its LayerNorm, or both."""
    vocab_size: int = 0
    """Ids in use, without padding ids. 0: taken from the tokenizer."""

    @property
    def padded_vocab_size(self) -> int:
        """Rows of the embedding table: vocab_size rounded up to a multiple of 128."""
        return -(-self.vocab_size // 128) * 128

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def shared_parts(self) -> tuple[str, ...]:
        """Modules of a layer whose weights all layers share."""
        parts = ('attention', 'feed_forward') if self.layers_share == 'all' else (self.layers_share,)
        return tuple(name for part in parts if part != 'none' for name in (part, f'{part}_norm'))

    @property
    def table_width(self) -> int:
        """Width of the tables of embeddings."""
        return self.embedding_width or self.width

    def __post_init__(self):
        for name in ('layers', 'width', 'heads', 'feed_forward', 'max_length', 'type_vocab_size'):
            if getattr(self, name) < 1:
                raise ValueError(f'model.{name} is {getattr(self, name)}: use 1 or more')
        if self.width % self.heads:
            raise ValueError(f'model.width {self.width} is not a multiple of model.heads {self.heads}')
        if self.positions == 'rotary' and self.head_width % 2:
            raise ValueError(f'model.positions rotary needs an even head width; width / heads is {self.head_width}')
        for name in ('norm_epsilon', 'init_stddev'):
            if not 0 < getattr(self, name) < float('inf'):
                raise ValueError(f'model.{name} is {getattr(self, name)}: use a number above 0')
        for name in ('dropout', 'attention_dropout'):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f'model.{name} is {getattr(self, name)}: use a number from 0 to below 1')
        if self.embedding_width < 0:
            raise ValueError(f'model.embedding_width is {self.embedding_width}: use 0 (the width) or more')
        if self.window < 0:
            raise ValueError(f'model.window is {self.window}: use 0 (no window) or more')
        if self.attention != 'xla' and self.attention_dropout:
            raise ValueError(
                f'model.attention {self.attention} drops no attention weights: set model.attention_dropout 0 or use xla'
            )
        if self.attention == 'cudnn' and self.dtype != 'bfloat16':
            raise ValueError('model.attention cudnn computes in bfloat16: set model.dtype bfloat16 or use xla')


@dataclass(frozen=True)
class GeneratorConfig:
    """The small masked language model that replaces tokens for a discriminator (Clark et al. 2020)."""

    width: float = 0.25
    """Its hidden width, heads and feed-forward, as a fraction of the model's."""
    layers: float = 1.0
    """Its layers, as a fraction of the model's."""
    share: Literal['embeddings', 'token', 'disentangled', 'weights', 'none'] = 'embeddings'
    """What is one with the model's: all embeddings; the token table; the token table as in GDES (He et al. 2023: the
    model reads it without sending it a gradient, plus a table of its own that starts at 0); the whole encoder; nothing.
    Shared tables are projected where the generator is narrower than they are."""

    def __post_init__(self):
        for name in ('width', 'layers'):
            if not 0 < getattr(self, name) <= 4:
                raise ValueError(f'objective.generator.{name} is {getattr(self, name)}: use a fraction above 0')
        if self.share == 'weights' and (self.width, self.layers) != (1.0, 1.0):
            raise ValueError(
                f'objective.generator.share weights needs a generator as large as the model, not {self.width:g} of its '
                f'width and {self.layers:g} of its layers: set both to 1, or share embeddings'
            )


def generator_model(model: ModelConfig, generator: GeneratorConfig) -> ModelConfig:
    """The shape of a generator.

    Raises:
      ValueError: the model has no such fraction: heads of equal width, for example.
    """
    width, layers = generator.width, generator.layers
    sizes = {name: max(1, round(width * getattr(model, name))) for name in ('width', 'heads', 'feed_forward')}
    embedding_width = 0 if generator.share == 'none' else model.table_width
    try:
        return replace(model, **sizes, layers=max(1, round(layers * model.layers)), embedding_width=embedding_width)
    except ValueError as error:
        raise ValueError(f'objective.generator.width {width:g} of this model: {error}') from None


LONGEST_OFFSET = 32
OFFSET_WIDTH = 200
"""Of the span-boundary head's table of places in a span: its rows, and their width (Joshi et al. 2020, Section 3.2)."""

# layers, width, heads, feed_forward. Tiny to medium: google-research/bert README; base, large: Devlin et al. Section 3.
SIZES = {
    'tiny': dict(layers=2, width=128, heads=2, feed_forward=512),
    'mini': dict(layers=4, width=256, heads=4, feed_forward=1024),
    'small': dict(layers=4, width=512, heads=8, feed_forward=2048),
    'medium': dict(layers=8, width=512, heads=8, feed_forward=2048),
    'base': dict(layers=12, width=768, heads=12, feed_forward=3072),
    'large': dict(layers=24, width=1024, heads=16, feed_forward=4096),
    # Lan et al. 2020, Table 1; heads and feed-forward: Section 3.1.
    **{
        f'albert_{size}': dict(
            layers=layers,
            width=width,
            heads=width // 64,
            feed_forward=4 * width,
            embedding_width=128,
            layers_share='all',
        )
        for size, layers, width in (('base', 12, 768), ('large', 24, 1024), ('xlarge', 24, 2048), ('xxlarge', 12, 4096))
    },
    # Clark et al. 2020, Table 6. ELECTRA-base and -large have the sizes of BERT's.
    'electra_small': dict(layers=12, width=256, heads=4, feed_forward=1024, embedding_width=128),
}
