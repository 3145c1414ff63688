"""The curriculum's three arms cost what they say, by counts made here."""

import math

import pytest

from configs import curriculum, scales

SCALES = tuple(scales.SCALES)


def tokens(config):
    return sum(stage.steps * stage.batch_size * stage.length for stage in config.stages)


def flops(config):
    """Two for each multiply-add of the forward matrix products, written out."""
    model, vocab = config.model, config.data.vocab_size
    width, inner = model.width, model.feed_forward
    total = 0
    for stage in config.stages:
        rows, length = stage.steps * stage.batch_size, stage.length
        slots = 8 * math.ceil(math.floor(config.masking.corruption_rate * (length - 2) + 0.5) / 8)
        total_of_row = slots * (width * width + width * vocab)  # the head
        for layer in range(model.layers):
            queries = slots if layer == model.layers - 1 else length  # the last layer serves the head alone
            total_of_row += 2 * length * width * width  # key, value
            total_of_row += 2 * queries * width * width  # query, output
            total_of_row += 2 * queries * length * width  # scores and mix
            total_of_row += 2 * queries * width * inner
        total += rows * 2 * total_of_row
    return total


def near(config):
    """1%, or half a step where a run is so short that this is more."""
    return pytest.approx(1.0, rel=max(0.01, 0.6 / config.steps))


@pytest.mark.parametrize('scale', SCALES)
def test_equal_tokens(scale):
    built = curriculum.config(scale)
    config = built.config('long, equal tokens')
    assert tokens(config) / tokens(built.config('short, then long')) == near(config)


@pytest.mark.parametrize('scale', SCALES)
def test_equal_flops(scale):
    built = curriculum.config(scale)
    config = built.config('long, equal FLOPs')
    assert flops(config) / flops(built.config('short, then long')) == near(config)


@pytest.mark.parametrize('scale', SCALES)
def test_long_rows_cost_more(scale):
    built = curriculum.config(scale)
    equal_tokens, equal_flops = built.config('long, equal tokens'), built.config('long, equal FLOPs')
    assert equal_flops.steps < equal_tokens.steps
    for config in (equal_tokens, equal_flops):
        (stage,) = config.stages
        assert (stage.length, stage.batch_size) == (built.base.stages[-1].length, built.base.stages[-1].batch_size)


def test_published_lengths():
    built = curriculum.config('paper')
    assert [(stage.length, stage.steps) for stage in built.base.stages] == [(128, 900_000), (512, 100_000)]
    assert built.config('long, equal tokens').stages[0].steps == 325_000
