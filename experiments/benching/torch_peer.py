"""The same step in PyTorch: `transformers`' BertForMaskedLM with torch's AdamW."""

import itertools
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

from train.config import Config


def missing() -> list[str]:
    """Packages that the other side needs and that are not installed."""
    return [name for name in ('torch', 'transformers') if find_spec(name) is None]


class TorchSteps:
    """Steps over rows that are masked already: choosing and replacing tokens costs this side nothing."""

    def __init__(self, config: Config, masked: Sequence, threads: int):
        """A model of `config.model`'s sizes.

        Args:
          masked: batches as `train.masking.Masked`, as numpy arrays.
        """
        import torch
        import transformers

        torch.set_num_threads(threads)
        torch.manual_seed(0)
        model, optimizer = config.model, config.optimizer
        self._model = transformers.BertForMaskedLM(
            transformers.BertConfig(
                vocab_size=model.vocab_size,
                hidden_size=model.width,
                num_hidden_layers=model.layers,
                num_attention_heads=model.heads,
                intermediate_size=model.feed_forward,
                max_position_embeddings=model.max_length,
                type_vocab_size=model.type_vocab_size,
                hidden_dropout_prob=model.dropout,
                attention_probs_dropout_prob=model.attention_dropout,
                layer_norm_eps=model.norm_epsilon,
                hidden_act='gelu',
            )
        ).train()
        self._optimizer = torch.optim.AdamW(
            self._model.parameters(),
            lr=optimizer.learning_rate,
            betas=(optimizer.beta1, optimizer.beta2),
            eps=optimizer.epsilon,
            weight_decay=optimizer.weight_decay,
        )
        self._batches = itertools.cycle([{k: torch.from_numpy(v) for k, v in inputs(m).items()} for m in masked])

    def __call__(self, steps: int) -> None:
        """Runs steps."""
        for batch in itertools.islice(self._batches, steps):
            self._optimizer.zero_grad()
            self._model(**batch).loss.backward()
            self._optimizer.step()


def inputs(masked) -> dict[str, np.ndarray]:
    """What BertForMaskedLM takes: labels are -100 where nothing is scored."""
    labels_BxL = np.full(masked.inputs_BxL.shape, -100, np.int64)
    row_BxM = np.broadcast_to(np.arange(len(labels_BxL))[:, None], masked.positions_BxM.shape)
    used_BxM = masked.weights_BxM > 0
    labels_BxL[row_BxM[used_BxM], masked.positions_BxM[used_BxM]] = masked.labels_BxM[used_BxM]
    tokens_BxL = masked.inputs_BxL.astype(np.int64)
    return {'input_ids': tokens_BxL, 'attention_mask': np.ones_like(tokens_BxL), 'labels': labels_BxL}
