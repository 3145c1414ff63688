"""Floating-point operations, counted analytically."""

from model.config import OFFSET_WIDTH, ModelConfig


def forward_flops(config: ModelConfig, batch_size: int, length: int, targets: int) -> float:
    """Operations of one forward pass over B rows of L tokens with M scored positions each, a multiply-add as two.

    Matrix products alone. A backward pass takes twice as many (Kaplan et al. 2020, Section 2.1).
    """
    return encoder_flops(config, batch_size, length, targets) + head_flops(config, batch_size, targets)


def head_flops(config: ModelConfig, batch_size: int, targets: int) -> float:
    """Of the MLM head at M positions of each of B rows: its dense layer and the tied output.

    Raises:
      ValueError: the size of the vocabulary is still 0, as it is before there is a tokenizer.
    """
    if not config.vocab_size:
        raise ValueError('model.vocab_size is 0: the output cannot be counted before the vocabulary is known')
    return float(batch_size) * targets * 2 * config.table_width * (config.width + config.padded_vocab_size)


def boundary_flops(config: ModelConfig, batch_size: int, targets: int) -> float:
    """Of the span-boundary head at M targets of each of B rows (`model/boundary.py`)."""
    first = 2 * (2 * config.width + OFFSET_WIDTH) * config.width
    return float(batch_size) * targets * first + head_flops(config, batch_size, targets)


def encoder_flops(config: ModelConfig, batch_size: int, length: int, targets: int) -> float:
    """Of `encode`, with the states of M positions asked for: a projection of embeddings; the four projections, scores
    and mix of attention, and the feed-forward. Of the last layer keys and values of all tokens, the rest at those M.
    """
    width, inner = config.width, config.feed_forward
    keys_and_values = 2 * 2 * width**2
    rest = 2 * (2 * width**2 + 2 * width * inner) + 4 * length * width
    embeddings = 2 * length * width * config.table_width if config.table_width != width else 0
    layer = length * (keys_and_values + rest)
    last = length * keys_and_values + targets * rest
    return float(batch_size) * (embeddings + (config.layers - 1) * layer + last)
