"""An encoder with the head of a task."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from model import mlm
from model.config import ModelConfig
from model.heads import POOLED, Kind, apply_head, init_head
from train.randomness import HEAD, purpose_key


@dataclass(frozen=True)
class Network:
    """What is fine-tuned. Its parameters are {'encoder': those of model.mlm without its head, 'head': model.heads'}."""

    model: ModelConfig
    kind: Kind
    labels: int
    """Outputs of the head, C."""
    features: int = 0
    """As `model.heads.init_head` takes it: 0 trains the encoder too."""

    def init_head(self, seed: jax.Array) -> Any:
        """The head that a fine-tuning seed starts with."""
        return init_head(purpose_key(seed, HEAD), self.model, self.kind, self.labels, self.features)

    def init(self, key: jax.Array, seed: jax.Array) -> Any:
        """All parameters, the encoder's drawn anew."""
        encoder = {name: part for name, part in mlm.init(key, self.model).items() if name != 'head'}
        return {'encoder': encoder, 'head': self.init_head(seed)}

    def __call__(
        self,
        params: Any,
        tokens_BxL: jax.Array,
        document_ids_BxL: jax.Array,
        type_ids_BxL: jax.Array,
        key: jax.Array | None = None,
    ) -> jax.Array:
        """Outputs as `model.heads.apply_head` gives them.

        Args:
          key: typed key for dropout, of which a frozen encoder has none; None: no dropout.
        """
        encoder_key, head_key = (None, None) if key is None else jax.random.split(key)
        # Encoders without types, such as RoBERTa's, have a table of one row.
        type_ids_BxL = jnp.minimum(type_ids_BxL, self.model.type_vocab_size - 1)
        states_BxLxE = mlm.encode(
            params['encoder'],
            self.model,
            tokens_BxL,
            document_ids_BxL,
            type_ids_BxL,
            None if self.features else encoder_key,
            # The last layer need compute the state of [CLS] alone.
            positions_BxM=jnp.zeros((len(tokens_BxL), 1), jnp.int32) if self.kind in POOLED else None,
            last=max(self.features, 1),
        )
        lengths_B = jnp.sum(document_ids_BxL > 0, axis=1)
        frozen = self.features > 0
        return apply_head(params['head'], self.model, self.kind, self.labels, states_BxLxE, lengths_B, head_key, frozen)
