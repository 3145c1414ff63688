"""Rates as integers, their course over a run, copies and slots."""

from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.train import reference_masking as reference
from train.config import MaskingConfig
from train.rates import LONGEST_ROW, UNITS, copies, count, rate_at, rate_units, target_slots


def test_units_of_every_rate():
    """Exact for all rates of up to five decimals, however the float is made."""
    for units in range(UNITS + 1):
        assert rate_units(units / UNITS) == units
    assert rate_units(0.000005) == 1  # a tie goes up
    assert rate_units(0.0000049) == 0
    assert rate_units(np.float32(0.15)) == 15_000
    assert rate_units(1 / 3) == 33_333


@given(st.integers(0, UNITS), st.lists(st.integers(0, LONGEST_ROW), min_size=1, max_size=50))
@hypothesis_settings(deadline=None)
def test_counts_are_exact(units, numbers):
    want = [reference.rounded(Fraction(units, UNITS), number) for number in numbers]
    assert [count(units, number) for number in numbers] == want
    assert count(np.int32(units), np.array(numbers, np.int32)).tolist() == want


def test_counts_in_int32_at_the_limit():
    numbers = jnp.arange(LONGEST_ROW - 100, LONGEST_ROW + 1, dtype=jnp.int32)
    for units in (1, 49_999, 50_000, 99_999, 100_000):
        want = [reference.rounded(Fraction(units, UNITS), int(number)) for number in numbers]
        got = count(jnp.int32(units), numbers)
        assert got.dtype == jnp.int32 and got.tolist() == want
    # One token more and the sum no longer fits.
    assert UNITS * LONGEST_ROW + UNITS // 2 < 2**31 <= UNITS * (LONGEST_ROW + 1) + UNITS // 2


def test_float32_would_not_do():
    """Why counts are integers: 0.45 x 10 = 4.5 goes up, and float32 gets many such products wrong."""
    wrong = 0
    for units in range(0, UNITS, 100):
        for number in range(1, 127):
            rough = int(np.floor(np.float32(units / UNITS) * np.float32(number) + np.float32(0.5)))
            wrong += rough != count(units, number)
    assert wrong > 0
    assert count(45_000, 10) == 5


def test_constant_rate():
    assert {rate_at(MaskingConfig(corruption_rate=0.3), step, 100) for step in range(101)} == {0.3}


def test_linear_schedule_is_the_published_formula():
    """p(t) = p0 + t/T (p1 - p0), Ankner et al. 2023; and each way."""
    for begin, end in ((0.3, 0.15), (0.15, 0.3)):
        config = MaskingConfig(corruption_rate=begin, rate_points=((1.0, end),))
        got = [rate_at(config, step, 40) for step in range(41)]
        np.testing.assert_allclose(got, [begin + step / 40 * (end - begin) for step in range(41)], rtol=1e-12)
        assert got[-1] == end and rate_units(rate_at(config, 20, 40)) == 22_500


def test_schedules_through_several_points():
    points = dict(corruption_rate=0.5, rate_points=((0.25, 0.1), (0.75, 0.3)))
    steps = np.arange(41)
    linear = [rate_at(MaskingConfig(**points), step, 40) for step in steps]
    np.testing.assert_allclose(linear, np.interp(steps / 40, [0, 0.25, 0.75], [0.5, 0.1, 0.3]), rtol=1e-12)
    jumps = [rate_at(MaskingConfig(**points, rate_curve='step'), step, 40) for step in steps]
    assert jumps == [0.5] * 10 + [0.1] * 20 + [0.3] * 11
    cosine = [rate_at(MaskingConfig(**points, rate_curve='cosine'), step, 40) for step in steps]
    falling = 0.1 + 0.4 * (1 + np.cos(np.pi * steps[:10] / 10)) / 2
    rising = 0.3 - 0.2 * (1 + np.cos(np.pi * (steps[10:30] - 10) / 20)) / 2
    np.testing.assert_allclose(cosine, [*falling, *rising, *[0.3] * 11], rtol=1e-12)


@given(
    st.floats(0, 1), st.lists(st.floats(0, 1), min_size=1, max_size=4), st.sampled_from(['linear', 'cosine', 'step'])
)
@hypothesis_settings(deadline=None)
def test_a_schedule_stays_between_its_points(begin, rates, curve):
    shares = [(i + 1) / len(rates) for i in range(len(rates))]
    config = MaskingConfig(corruption_rate=begin, rate_points=tuple(zip(shares, rates, strict=True)), rate_curve=curve)
    got = [rate_at(config, step, 17) for step in range(18)]
    assert min([begin, *rates]) - 1e-12 <= min(got) and max(got) <= max([begin, *rates]) + 1e-12
    assert got[0] == begin and got[-1] == rates[-1]
    # What any step needs, the slots hold.
    slots = target_slots([config], 128)
    assert slots % 8 == 0 and slots >= max(count(rate_units(rate), 126) for rate in got)


@pytest.mark.parametrize(
    ('corruption', 'prediction', 'want'),
    [(0.4, None, 1), (0.4, 0.4, 1), (0.4, 0.2, 1), (0.2, 0.4, 2), (0.1, 0.4, 4), (0.05, 0.4, 8), (0.3, 0.4, 2)]
    + [(0.15, 0.45, 3), (0.1, 0.3, 3), (0.3, 1.0, 4), (0.4, 0.0, 1), (0.0, None, 1), (0.0, 0.0, 1)],
)
def test_copies(corruption, prediction, want):
    """Wettig et al. 2023, Table 3, among them; 0.45 / 0.15 and 0.3 / 0.1 are a little above 3 in floating point."""
    assert copies(MaskingConfig(corruption_rate=corruption, prediction_rate=prediction)) == want


def test_copies_of_a_rate_that_is_too_small():
    with pytest.raises(ValueError, match='0.00001 or more'):
        copies(MaskingConfig(corruption_rate=0.000001, prediction_rate=0.1))


def test_slots():
    def slots(length, *arms):
        return target_slots([MaskingConfig(**arm) for arm in arms], length)

    assert slots(128, {'corruption_rate': 0.15}) == 24  # 18.9 of 126 tokens
    assert slots(128, {'corruption_rate': 0.4}) == 56  # 50.4
    assert slots(512, {'corruption_rate': 0.15}, {'corruption_rate': 0.4}) == 208  # 204 of 510
    assert slots(128, {'corruption_rate': 1.0}) == 128
    assert slots(12, {'corruption_rate': 1.0}) == 16
    assert slots(128, {'corruption_rate': 0.0}) == 8
    assert slots(128, {'corruption_rate': 0.15, 'rate_points': ((0.5, 0.4), (1.0, 0.1))}) == 56
    # Copies score what they corrupt; below the corruption rate fewer are scored.
    assert slots(128, {'corruption_rate': 0.1, 'prediction_rate': 0.4}) == 16
    assert slots(128, {'corruption_rate': 0.4, 'prediction_rate': 0.1}) == 16
