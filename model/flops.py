"""Floating-point operations, counted analytically."""

from model.config import ModelConfig


def forward_flops(config: ModelConfig, batch_size: int, length: int, targets: int) -> float:
    """Operations of one forward pass over B rows of L tokens with M scored positions each, a multiply-add as two.

    Matrix products alone: the four projections, scores and mix of attention, the feed-forward, and at the M positions
    the head's dense layer and the tied output. Of the last layer, what `encode` computes for the M positions: keys and
    values of all tokens, the rest at those alone. A backward pass takes twice as many (Kaplan et al. 2020, Section
    2.1).
    """
    width, inner = config.width, config.feed_forward
    keys_and_values = 2 * 2 * width**2
    rest = 2 * (2 * width**2 + 2 * width * inner) + 4 * length * width
    head = 2 * (width**2 + width * config.padded_vocab_size)
    layer = length * (keys_and_values + rest)
    last = length * keys_and_values + targets * rest
    return float(batch_size) * ((config.layers - 1) * layer + last + targets * head)
