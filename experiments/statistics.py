"""Means, intervals and tests over seeds. Plain arrays in, and words only where a test is missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import special, stats

LEVEL = 0.95
"""Coverage of every interval; two-sided tests are held against 1 - LEVEL."""


@dataclass(frozen=True)
class Summary:
    """An arm's figure over its seeds."""

    n: int
    mean: float | None
    sd: float | None
    """Sample standard deviation (n - 1); None below 2 values."""
    half_width: float | None
    """The interval is mean +- half_width; None where `reason` says why."""
    reason: str = ''


@dataclass(frozen=True)
class Test:
    """A t test of one difference of means. What is None is missing for `reason`."""

    __test__ = False  # not a test case of pytest

    kind: str
    """paired or welch."""
    ns: tuple[int, ...]
    """Number of pairs, or of values in the first and in the second group."""
    difference: float | None
    """Mean of the second group less mean of the first (of the pairs alone, if paired)."""
    spreads: tuple[float, ...] = ()
    """Standard deviation of the pairs' differences, or of each group."""
    standard_error: float | None = None
    df: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    reason: str = ''


@dataclass(frozen=True)
class Comparison:
    """One pair of arms, tested both ways; `counts` names the test fixed beforehand."""

    first: int
    second: int
    """Arms by number; differences are second less first."""
    paired: Test
    welch: Test
    correlation: float | None
    """Pearson's, over the pairs; None with fewer than 3 pairs or no spread."""
    counts: str
    holm_p: float | None = None
    """p of the test that counts, corrected over the family; None without p, and before `holm` was applied."""

    @property
    def counting(self) -> Test:
        return self.paired if self.counts == 'paired' else self.welch


def summary(values: Sequence[float]) -> Summary:
    """Mean and t interval over the finite values; NaN stands for a missing one."""
    values = _present(values)
    n = len(values)
    if n == 0:
        return Summary(0, None, None, None, 'no result')
    mean = float(np.mean(values))
    if n == 1:
        return Summary(1, mean, None, None, 'one seed')
    if _flat(values, values):
        return Summary(n, mean, 0.0, None, 'all seeds equal')
    sd = float(np.std(values, ddof=1))
    return Summary(n, mean, sd, float(_critical(n - 1) * sd / np.sqrt(n)))


def paired(first: Sequence[float], second: Sequence[float]) -> Test:
    """Student's t test on second - first by position (seed); positions where either is NaN are left out."""
    a, b = _pairs(first, second)
    differences = b - a
    mean = float(np.mean(differences)) if len(a) else None
    if len(a) < 2:
        words = 'no pair' if not len(a) else 'one pair'
        return Test('paired', (len(a),), mean, reason=words)
    if _flat(differences, np.concatenate([a, b])):
        same = bool(np.allclose(a, b, rtol=1e-12, atol=0))
        words = 'equal in every seed' if same else 'same difference in every seed'
        return Test('paired', (len(a),), mean, reason=words)
    return _t_test('paired', mean, (float(np.std(differences, ddof=1)),), (len(a),))


def welch(first: Sequence[float], second: Sequence[float]) -> Test:
    """Welch's t test, which takes the two groups as independent and their variances as different (Welch 1947)."""
    a, b = _present(first), _present(second)
    ns = (len(a), len(b))
    if min(ns) == 0:
        return Test('welch', ns, None, reason='no result')
    mean = float(np.mean(b) - np.mean(a))
    if min(ns) == 1:
        return Test('welch', ns, mean, reason='one seed')
    if _flat(a, a) and _flat(b, b):
        return Test('welch', ns, mean, reason='no spread in either arm')
    return _t_test('welch', mean, (float(np.std(a, ddof=1)), float(np.std(b, ddof=1))), ns)


def correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Pearson's correlation of the pairs; None with fewer than 3 pairs (2 always give +-1) or without spread."""
    a, b = _pairs(first, second)
    if len(a) < 3 or _flat(a, a) or _flat(b, b):
        return None
    return float(np.corrcoef(a, b)[0, 1])


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (Holm 1979), in the order given.

    A None (a test that could not be made) stays None but counts in the family, as p = 1 would: a family is fixed by
    the plan, not by what came out.
    """
    order = sorted((i for i, p in enumerate(ps) if p is not None), key=lambda i: ps[i])
    adjusted: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[i]))
        adjusted[i] = highest
    return adjusted


def against_baseline(values_AxS: np.ndarray, baseline: int, counts: str) -> list[Comparison]:
    """Every arm but the baseline less the baseline, Holm-corrected over them.

    Args:
      values_AxS: one figure of each arm (A) and seed (S), NaN where there is none.
      counts: paired or welch, the test whose p is corrected.
    """
    others = [arm for arm in range(len(values_AxS)) if arm != baseline]
    return _compare(values_AxS, [(baseline, arm) for arm in others], counts)


def all_pairs(values_AxS: np.ndarray, counts: str) -> list[Comparison]:
    """Every pair of arms, Holm-corrected over the pairs."""
    return _compare(values_AxS, list(combinations(range(len(values_AxS)), 2)), counts)


def _compare(values_AxS, pairs, counts) -> list[Comparison]:
    found = []
    for first, second in pairs:
        a, b = values_AxS[first], values_AxS[second]
        found.append(Comparison(first, second, paired(a, b), welch(a, b), correlation(a, b), counts))
    adjusted = holm([comparison.counting.p for comparison in found])
    return [
        Comparison(c.first, c.second, c.paired, c.welch, c.correlation, c.counts, p)
        for c, p in zip(found, adjusted, strict=True)
    ]


def exact_binomial(successes: int, trials: int) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share."""
    interval = stats.binomtest(successes, trials).proportion_ci(LEVEL, method='exact')
    return float(interval.low), float(interval.high)


def error_and_df(spreads: Sequence[float], ns: Sequence[int]) -> tuple[float, float]:
    """Standard error of a difference and its degrees of freedom (Welch and Satterthwaite).

    One spread with n pairs gives sd / sqrt(n) and n - 1.
    """
    unit = max(spreads)  # so that no square underflows
    variances = [(spread / unit) ** 2 / n for spread, n in zip(spreads, ns, strict=True)]
    below = sum(variance**2 / (n - 1) for variance, n in zip(variances, ns, strict=True))
    return float(unit * np.sqrt(sum(variances))), float(sum(variances) ** 2 / below)


def _t_test(kind: str, difference: float, spreads: tuple[float, ...], ns: tuple[int, ...]) -> Test:
    error, df = error_and_df(spreads, ns)
    width = _critical(df) * error
    p = float(2 * special.stdtr(df, -abs(difference) / error))
    return Test(kind, ns, difference, spreads, error, df, float(difference - width), float(difference + width), p)


def _critical(df: float) -> float:
    # Many times faster than stats.t, which matters where thousands of ablations are simulated.
    return float(special.stdtrit(df, (1 + LEVEL) / 2))


def _present(values: Sequence[float]) -> np.ndarray:
    values = np.asarray(values, np.float64)
    return values[np.isfinite(values)]


def _pairs(first: Sequence[float], second: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.asarray(first, np.float64), np.asarray(second, np.float64)
    both = np.isfinite(a) & np.isfinite(b)
    return a[both], b[both]


def _flat(values: np.ndarray, origin: np.ndarray) -> bool:
    """No spread beyond the rounding of the numbers that the values come from."""
    return bool(np.ptp(values) <= max(1e-12 * np.max(np.abs(origin)), 1e-100))
