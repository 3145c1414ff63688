"""Floating-point operations, counted analytically."""

from model.config import ModelConfig


def forward_flops(config: ModelConfig, batch_size: int, length: int, targets: int) -> float:
    """Operations of one forward pass over B rows of L tokens with M scored positions each, a multiply-add as two.

    Matrix products alone: the four projections, scores and mix of attention, the feed-forward, and at the M positions
    the head's dense layer and the tied output. A backward pass takes twice as many (Kaplan et al. 2020, Section 2.1).
    """
    width, inner = config.width, config.feed_forward
    token = 2 * (4 * width**2 + 2 * width * inner)
    attention = 4 * length * width
    head = 2 * (width**2 + width * config.padded_vocab_size)
    return float(batch_size) * (length * config.layers * (token + attention) + targets * head)
