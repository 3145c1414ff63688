"""The same fine-tuning in PyTorch: `transformers`' BertForSequenceClassification, padded to a batch's longest row."""

import numpy as np

from data.tasks.features import Features
from model.config import ModelConfig
from train.finetuning.config import FinetuneConfig


class TorchPasses:
    """Passes over the rows in random order, with torch's AdamW and clipping by the gradient's norm."""

    def __init__(self, model: ModelConfig, config: FinetuneConfig, rows: Features, threads: int):
        import torch
        import transformers

        torch.set_num_threads(threads)
        torch.manual_seed(0)
        self._torch, self._config, self._rows = torch, config, rows
        self._model = transformers.BertForSequenceClassification(
            transformers.BertConfig(
                vocab_size=model.vocab_size,
                hidden_size=model.width,
                num_hidden_layers=model.layers,
                num_attention_heads=model.heads,
                intermediate_size=model.feed_forward,
                max_position_embeddings=model.max_length,
                hidden_dropout_prob=model.dropout,
                attention_probs_dropout_prob=model.attention_dropout,
                hidden_act='gelu',
                num_labels=2,
            )
        ).train()
        self._optimizer = torch.optim.AdamW(
            self._model.parameters(), lr=config.learning_rate, eps=1e-6, weight_decay=config.weight_decay
        )
        self._random = np.random.default_rng(0)

    def __call__(self, passes: int) -> None:
        """Runs passes."""
        size = self._config.batch_size
        for _ in range(passes):
            order = self._random.permutation(len(self._rows))
            for first in range(0, len(order), size):
                self._optimizer.zero_grad()
                inputs = padded(self._rows, order[first : first + size])
                self._model(**{name: self._torch.from_numpy(array) for name, array in inputs.items()}).loss.backward()
                self._torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._config.clip_norm)
                self._optimizer.step()


def padded(rows: Features, numbers: np.ndarray) -> dict[str, np.ndarray]:
    """These rows as BertForSequenceClassification takes them, padded to the longest of them."""
    lengths_B = rows.lengths_N[numbers]
    real_BxL = np.arange(lengths_B.max()) < lengths_B[:, None]
    tokens_BxL = np.full(real_BxL.shape, rows.vocabulary.pad, np.int64)
    tokens_BxL[real_BxL] = np.concatenate([rows.tokens_T[rows.offsets[n] : rows.offsets[n + 1]] for n in numbers])
    return {
        'input_ids': tokens_BxL,
        'attention_mask': real_BxL.astype(np.int64),
        'labels': rows.targets[numbers].astype(np.int64),
    }
