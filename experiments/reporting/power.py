"""What a number of seeds could have found: power of a two-sided t test, from the noncentral t distribution."""

from collections.abc import Sequence

from scipy import optimize, stats

from experiments.statistics import LEVEL, error_and_df

POWER = 0.8
"""Chance with which a difference of the size reported is found."""
MOST_SEEDS = 1_000_000


def power(noncentrality: float, df: float) -> float:
    """Chance that a two-sided t test at 1 - LEVEL finds a difference of `noncentrality` standard errors."""
    critical = stats.t.ppf((1 + LEVEL) / 2, df)
    chance = stats.nct.sf(critical, df, noncentrality)
    # The other tail is below the normal's at -noncentrality; past 6 it is nothing, and scipy gives NaN there.
    return float(chance + (stats.nct.cdf(-critical, df, noncentrality) if noncentrality < 6 else 0.0))


def smallest_difference(standard_error: float, df: float) -> float:
    """The difference of means that a test with these would find with chance POWER, the spread taken as the true one.

    Exact for the paired test. Welch's finds a little less with few seeds, since it has to estimate its degrees of
    freedom (0.76 in place of 0.80 with 4 seeds an arm).
    """
    noncentrality = optimize.brentq(lambda x: power(x, df) - POWER, 0.0, 40.0, xtol=1e-9)
    return float(noncentrality * standard_error)


def seeds_needed(difference: float, spreads: Sequence[float]) -> int | None:
    """Seeds an arm with which a difference would be found with chance POWER; None above a million.

    Args:
      difference: of means, above 0.
      spreads: standard deviation of the pairs' differences (paired), or of each arm (Welch).
    """

    def enough(n: int) -> bool:
        error, df = error_and_df(spreads, [n] * len(spreads))
        return power(min(difference / error, 40.0), df) >= POWER - 1e-6  # the difference is itself a rounded root

    high = 2
    while not enough(high):
        high *= 2
        if high > MOST_SEEDS:
            return None
    low = max(high // 2, 1)  # not enough, or below the least possible
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
