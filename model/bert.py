"""BERT's encoder (Devlin et al. 2019), its pre-LN form, and either with rotary positions: the modules."""

import jax
import jax.numpy as jnp
from flax import linen as nn

from model.attention import NEVER, SelfAttention
from model.config import ModelConfig
from model.dropout import drop, noise_seed
from model.gelu import gelu, gelu_product
from model.layout import named, used
from model.linear import Linear
from model.norm import LayerNorm
from model.parameters import declare


class Table(nn.Module):
    """Rows looked up by id."""

    rows: int
    width: int
    axis: str
    across: str = 'embed'
    """Logical name of the width."""

    @nn.compact
    def __call__(self) -> jax.Array:
        table = declare(self, 'embedding', (self.rows, self.width), (self.axis, self.across))
        return used(table, self.axis, self.across)


class Embeddings(nn.Module):
    """Token, position (if learned) and type embeddings, summed, normed, dropped; projected if of another width."""

    config: ModelConfig

    @nn.compact
    def __call__(
        self, tokens_BxL: jax.Array, type_ids_BxL: jax.Array | None = None, key: jax.Array | None = None
    ) -> jax.Array:
        """Hidden states [B, L, D] in the compute type. Without type ids every token is of type 0.

        Raises:
          ValueError: rows are longer than the table of learned positions.
        """
        config = self.config
        length, width = tokens_BxL.shape[-1], config.table_width
        token_VxE = Table(config.padded_vocab_size, width, 'vocab', name='token')()
        type_TxE = Table(config.type_vocab_size, width, 'type', name='type')()
        hidden_BxLxE = jnp.take(token_VxE, tokens_BxL, axis=0)
        if type_ids_BxL is None:
            hidden_BxLxE += type_TxE[:1][None]
        else:
            hidden_BxLxE += jnp.take(type_TxE, type_ids_BxL, axis=0)
        if config.positions == 'learned':
            if length > config.max_length:
                raise ValueError(f'rows of {length} tokens, but model.max_length is {config.max_length}')
            position_LxE = Table(config.max_length, width, 'position', name='position')()[:length]
            hidden_BxLxE += position_LxE[None]
        hidden_BxLxE = LayerNorm(config.norm_epsilon, name='norm')(hidden_BxLxE.astype(config.dtype))
        hidden_BxLxE = _dropped(named(hidden_BxLxE, 'batch', 'length', 'width'), config.dropout, key)
        if width == config.width:
            return hidden_BxLxE
        project = Linear('ble,ed->bld', (width, config.width), ('embed', 'head_embed'), name='projection')
        return named(project(hidden_BxLxE), 'batch', 'length', 'width')


class FeedForward(nn.Module):
    """Two affine maps with a GELU between them."""

    config: ModelConfig

    @nn.compact
    def __call__(self, x_BxLxD: jax.Array) -> jax.Array:
        width, inner = self.config.width, self.config.feed_forward
        inner_BxLxF = Linear('bld,df->blf', (width, inner), ('embed', 'feed_forward'), name='up')(x_BxLxD)
        inner_BxLxF = named(inner_BxLxF, 'batch', 'length', 'feed_forward')
        axes = ('feed_forward', 'embed')
        return Linear('blf,fd->bld', (inner, width), axes, gelu_product, name='down')(inner_BxLxF)


class Layer(nn.Module):
    """Self-attention and feed-forward, each with a residual connection and a LayerNorm after it or before it."""

    config: ModelConfig

    @nn.compact
    def __call__(
        self,
        x_BxLxD: jax.Array,
        document_ids_BxL: jax.Array,
        key: jax.Array | None = None,
        positions_BxM: jax.Array | None = None,
    ) -> jax.Array:
        """Hidden states [B, L, D], or those at the positions alone, [B, M, D], which take less to compute.

        Args:
          document_ids_BxL: which document a token is from; 0 is padding.
          key: None: nothing is dropped.
        """
        config = self.config
        keys = [None] * 3 if key is None else jax.random.split(key, 3)
        seed_3 = noise_seed(keys[0]) if key is not None and config.attention_dropout else None
        attention = SelfAttention(config, name='attention')
        feed_forward = FeedForward(config, name='feed_forward')
        attention_norm = LayerNorm(config.norm_epsilon, name='attention_norm')
        feed_forward_norm = LayerNorm(config.norm_epsilon, name='feed_forward_norm')

        def added(x_BxMxD: jax.Array, y_BxMxD: jax.Array) -> jax.Array:
            return x_BxMxD + named(y_BxMxD, 'batch', 'length', 'width')

        def mixed(x_BxLxD: jax.Array) -> jax.Array:
            y_BxMxD = attention(rows_at(x_BxLxD, positions_BxM), x_BxLxD, document_ids_BxL, seed_3, positions_BxM)
            return _dropped(y_BxMxD, config.dropout, keys[1], positions_BxM)

        def fed(x_BxMxD: jax.Array) -> jax.Array:
            return _dropped(feed_forward(x_BxMxD), config.dropout, keys[2], positions_BxM)

        residual_BxMxD = rows_at(x_BxLxD, positions_BxM)
        if config.norm == 'post':
            x_BxMxD = attention_norm(added(residual_BxMxD, mixed(x_BxLxD)))
            return feed_forward_norm(added(x_BxMxD, fed(x_BxMxD)))
        x_BxMxD = added(residual_BxMxD, mixed(attention_norm(x_BxLxD)))
        return added(x_BxMxD, fed(feed_forward_norm(x_BxMxD)))


class Head(nn.Module):
    """BERT's head of the masked language model, over a tied table of embeddings."""

    config: ModelConfig

    @nn.compact
    def __call__(self, hidden_BxMxD: jax.Array, token_VxE: jax.Array) -> jax.Array:
        """Logits [B, M, V], float32. Padding ids (vocab_size and up) get a large negative one."""
        config = self.config
        dense = Linear('bmd,de->bme', (config.width, config.table_width), ('embed', 'head_embed'), name='dense')
        dense_BxMxE = named(dense(hidden_BxMxD), 'batch', 'length', 'width')
        hidden_BxMxE = LayerNorm(config.norm_epsilon, name='norm')(gelu(dense_BxMxE))
        bias_V = declare(self, 'bias', (config.padded_vocab_size,), ('vocab',))
        logits_BxMxV = jnp.einsum(
            'bme,ve->bmv',
            hidden_BxMxE,
            used(token_VxE.astype(hidden_BxMxE.dtype), 'vocab', 'embed'),
            preferred_element_type=jnp.float32,
        )
        logits_BxMxV = named(logits_BxMxV, 'batch', 'length', 'vocab')
        real_V = jnp.arange(config.padded_vocab_size) < config.vocab_size
        return jnp.where(real_V[None, None, :], logits_BxMxV + bias_V[None, None, :], NEVER)


class Pooler(nn.Module):
    """BERT's pooler: the first token's state, of any width, through an affine map to [B, D] and tanh."""

    config: ModelConfig

    @nn.compact
    def __call__(self, hidden_BxLxE: jax.Array) -> jax.Array:
        shape = (hidden_BxLxE.shape[-1], self.config.width)
        dense = Linear('ble,ed->bld', shape, ('embed', 'head_embed'), name='dense')
        return jnp.tanh(dense(hidden_BxLxE[:, :1]))[:, 0]


def rows_at(x_BxLxD: jax.Array, positions_BxM: jax.Array | None) -> jax.Array:
    """The states [B, M, D] at these positions; None: all."""
    return x_BxLxD if positions_BxM is None else jnp.take_along_axis(x_BxLxD, positions_BxM[..., None], axis=1)


def _dropped(x: jax.Array, rate: float, key: jax.Array | None, positions_BxM: jax.Array | None = None) -> jax.Array:
    return x if key is None or not rate else drop(x, noise_seed(key), rate, positions_BxM)
