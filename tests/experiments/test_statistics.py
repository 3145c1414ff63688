"""Tests over seeds against scipy, plain loops and simulation."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from experiments.reporting.power import power, seeds_needed, smallest_difference
from experiments.statistics import (
    against_baseline,
    all_pairs,
    correlation,
    error_and_df,
    exact_binomial,
    holm,
    paired,
    summary,
    welch,
)

NAN = float('nan')
SIMULATIONS = 2_000


def test_summary_is_the_t_interval():
    values = [4.1, 4.4, 4.2, 4.9]
    found = summary([*values, NAN])
    low, high = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert (found.n, found.mean) == (4, pytest.approx(4.4))
    assert found.sd == pytest.approx(np.std(values, ddof=1))
    assert found.mean - found.half_width == pytest.approx(low)
    assert found.mean + found.half_width == pytest.approx(high)


@pytest.mark.parametrize('n', [2, 3, 5, 20])
def test_paired_is_scipys(n):
    a, b = np.random.default_rng(n).normal(size=(2, n))
    found, reference = paired(a, b), stats.ttest_rel(b, a)
    assert found.difference == pytest.approx(np.mean(b - a))
    assert found.p == pytest.approx(reference.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx(tuple(reference.confidence_interval(0.95)), rel=1e-9)


@pytest.mark.parametrize('n', [(2, 2), (3, 5), (4, 2), (30, 7)])
def test_welch_is_scipys(n):
    random = np.random.default_rng(n)
    a, b = random.normal(size=n[0]), random.normal(1, 3, size=n[1])
    found, reference = welch(a, b), stats.ttest_ind(b, a, equal_var=False)
    assert found.p == pytest.approx(reference.pvalue, rel=1e-9)
    assert found.df == pytest.approx(reference.df, rel=1e-9)
    assert (found.low, found.high) == pytest.approx(tuple(reference.confidence_interval(0.95)), rel=1e-9)


def test_pairs_are_by_position_and_a_missing_seed_takes_its_pair_away_from_the_paired_test_alone():
    a, b = [1.0, 2.0, NAN, 4.0, 5.5], [1.5, NAN, 3.0, 4.1, 6.5]
    found = paired(a, b)
    assert found.ns == (3,) and found.difference == pytest.approx((0.5 + 0.1 + 1.0) / 3)
    assert found.p == pytest.approx(stats.ttest_rel([1.5, 4.1, 6.5], [1.0, 4.0, 5.5]).pvalue)
    assert welch(a, b).ns == (4, 4)
    assert correlation(a, b) == pytest.approx(np.corrcoef([1.0, 4.0, 5.5], [1.5, 4.1, 6.5])[0, 1])


@pytest.mark.parametrize(
    ('a', 'b', 'paired_words', 'welch_words'),
    [
        ([], [], 'no pair', 'no result'),
        ([1.0], [2.0], 'one pair', 'one seed'),
        ([1.0, NAN], [NAN, 2.0], 'no pair', 'one seed'),
        ([1.0, 1.0], [2.0, 2.0], 'same difference in every seed', 'no spread in either arm'),
        ([0.1, 0.2, 0.3], [0.4, 0.5, 0.6], 'same difference in every seed', ''),
        ([0.1, 0.2, 0.3], [0.1, 0.2, 0.3], 'equal in every seed', ''),
        ([0.0, 0.0], [0.0, 0.0], 'equal in every seed', 'no spread in either arm'),
    ],
)
def test_what_cannot_be_tested_says_why(a, b, paired_words, welch_words):
    for found, words in ((paired(a, b), paired_words), (welch(a, b), welch_words)):
        assert found.reason == words
        assert (found.p is None) == (found.low is None) == (found.df is None) == bool(words)


def test_summary_says_why_there_is_no_interval():
    assert summary([NAN, NAN]).reason == 'no result' and summary([NAN]).mean is None
    assert summary([3.0, NAN]).reason == 'one seed' and summary([3.0]).mean == 3.0
    assert summary([3.0, 3.0]).reason == 'all seeds equal' and summary([3.0, 3.0]).half_width is None


VALUES = st.one_of(st.just(NAN), st.sampled_from([0.0, 1.0, 4.5]), st.floats(-1e6, 1e6))


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.lists(VALUES, min_size=n, max_size=n), min_size=1, max_size=4)))
@settings(deadline=None, max_examples=200)
def test_no_nan_comes_out(values):
    values_AxS = np.array(values)
    numbers = []
    for row in values_AxS:
        found = summary(row)
        numbers += [found.mean, found.sd, found.half_width]
    for comparison in against_baseline(values_AxS, 0, 'paired'):
        numbers += [comparison.holm_p, comparison.correlation]
        for test in (comparison.paired, comparison.welch):
            numbers += [test.difference, test.low, test.high, test.p, test.df, test.standard_error]
            if test.p is not None:
                numbers.append(smallest_difference(test.standard_error, test.df))
    assert all(number is None or math.isfinite(number) for number in numbers)


def plain_holm(ps: list[float]) -> list[float]:
    """By the definition: reject the smallest, then the next, each against what is left of the family."""
    adjusted = []
    for p in ps:
        at_most = [other for other in ps if other <= p]
        steps = [(len(ps) - sum(other < q for other in ps)) * q for q in at_most]
        adjusted.append(min(1.0, max(steps)))
    return adjusted


PS = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.01, 0.02, 0.05])), min_size=1, max_size=8)


@given(PS)
@settings(deadline=None)
def test_holm_is_the_plain_loop_and_monotone(ps):
    found = holm(ps)
    assert found == pytest.approx(plain_holm(ps), abs=1e-15)
    assert all(p <= adjusted <= 1 for p, adjusted in zip(ps, found, strict=True))
    for (p, adjusted), (q, other) in itertools.combinations(zip(ps, found, strict=True), 2):
        assert adjusted == other or (p < q) == (adjusted < other)


def test_holm_by_hand_and_a_missing_test_stays_in_the_family():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.01, None, 0.03]) == [pytest.approx(0.03), None, pytest.approx(0.06)]
    assert holm([]) == []


@given(st.permutations(range(4)), st.integers(1, 5), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=50)
def test_the_order_of_the_arms_changes_nothing(order, seeds, seed):
    values_AxS = np.random.default_rng(seed).choice([NAN, 4.0, 4.1, 4.4, 4.9, 5.2], (4, seeds))
    found = {c.second: c for c in against_baseline(values_AxS, 0, 'welch')}
    for c in against_baseline(values_AxS[order], order.index(0), 'welch'):
        same = found[order[c.second]]
        assert (c.paired, c.welch, c.correlation, c.holm_p) == (same.paired, same.welch, same.correlation, same.holm_p)


def test_all_pairs_are_every_pair_once():
    values_AxS = np.random.default_rng(0).normal(size=(5, 4))
    found = all_pairs(values_AxS, 'paired')
    assert [(c.first, c.second) for c in found] == list(itertools.combinations(range(5), 2))
    assert found[4].paired.p == pytest.approx(stats.ttest_rel(values_AxS[1], values_AxS[2]).pvalue)
    assert [c.holm_p for c in found] == pytest.approx(plain_holm([c.paired.p for c in found]))


def test_exact_binomial_is_clopper_and_pearsons():
    low, high = exact_binomial(3, 28)
    assert (low, high) == pytest.approx((stats.beta.ppf(0.025, 3, 26), stats.beta.ppf(0.975, 4, 25)))
    assert exact_binomial(0, 28)[0] == 0


# Power


@pytest.mark.parametrize('df', [1, 1.4, 2, 9, 50])
@pytest.mark.parametrize('noncentrality', [0.0, 2.0, 5.9, 6.1, 16.3])
def test_power_is_the_integral_over_the_spread(df, noncentrality):
    critical = stats.t.ppf(0.975, df)

    def at(spread):
        beyond = stats.norm.sf(critical * np.sqrt(spread / df) - noncentrality)
        return stats.chi2.pdf(spread, df) * (beyond + stats.norm.cdf(-critical * np.sqrt(spread / df) - noncentrality))

    assert power(noncentrality, df) == pytest.approx(integrate.quad(at, 0, np.inf, limit=400)[0], abs=1e-6)


@pytest.mark.parametrize(
    ('spreads', 'ns'), [((0.3,), (2,)), ((0.3,), (3,)), ((0.3,), (8,)), ((0.2, 0.2), (8, 8)), ((0.1, 0.4), (9, 12))]
)
def test_the_smallest_difference_is_found_four_times_in_five(spreads, ns):
    random = np.random.default_rng(1)
    difference = smallest_difference(*error_and_df(spreads, ns))
    if len(ns) == 1:
        values = random.normal(difference, spreads[0], (20_000, ns[0]))
        p = stats.ttest_1samp(values, 0, axis=1).pvalue
    else:
        a, b = (random.normal(0, s, (20_000, n)) for s, n in zip(spreads, ns, strict=True))
        p = stats.ttest_ind(a, b + difference, axis=1, equal_var=False).pvalue
    assert np.mean(p < 0.05) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize('spreads', [(0.3,), (0.3, 0.3), (0.05, 0.4)])
@pytest.mark.parametrize('difference', [0.08, 0.2, 0.6, 5.0])
def test_seeds_needed_is_the_least(spreads, difference):
    def enough(n):
        error, df = error_and_df(spreads, [n] * len(spreads))
        return power(min(difference / error, 40), df) >= 0.8

    assert seeds_needed(difference, spreads) == next(n for n in itertools.count(2) if enough(n))


def test_seeds_needed_comes_near_the_normal_approximation_and_gives_up():
    """Half a point of GLUE at a standard deviation of 0.57: about 20 seeds an arm by the normal approximation."""
    assert seeds_needed(0.5, (0.57, 0.57)) in (21, 22)
    assert seeds_needed(1e-6, (1.0,)) is None
    found = smallest_difference(*error_and_df((0.3,), (7,)))
    assert seeds_needed(found, (0.3,)) == 7


# Simulation, through the functions that make the table


def simulate(true_differences, correlated: bool, seeds: int, counts: str):
    """Comparisons and summaries of SIMULATIONS ablations; arm 0 is the baseline, at 4."""
    random = np.random.default_rng(20240)
    means_A = 4 + np.array([0, *true_differences])
    spreads_A = 0.05 * np.ones(len(means_A)) if correlated else 0.05 * (1 + np.arange(len(means_A)))
    for _ in range(SIMULATIONS):
        shared_S = random.normal(0, 0.1 if correlated else 0, seeds)
        values_AxS = means_A[:, None] + shared_S + spreads_A[:, None] * random.normal(size=(len(means_A), seeds))
        yield against_baseline(values_AxS, 0, counts), [summary(row) for row in values_AxS], means_A


@pytest.mark.parametrize(('counts', 'seeds'), [('paired', 3), ('paired', 5), ('welch', 5)])
@pytest.mark.parametrize('difference', [0.0, 0.12])
def test_intervals_cover_and_false_alarms_are_as_stated(counts, seeds, difference):
    covered = means_covered = alarms = 0
    for (comparison,), summaries, means_A in simulate([difference], counts == 'paired', seeds, counts):
        test = comparison.counting
        covered += test.low <= difference <= test.high
        alarms += comparison.holm_p < 0.05
        means_covered += abs(summaries[0].mean - means_A[0]) <= summaries[0].half_width
    assert covered / SIMULATIONS == pytest.approx(0.95, abs=0.015)
    assert means_covered / SIMULATIONS == pytest.approx(0.95, abs=0.015)
    if difference:
        assert alarms / SIMULATIONS > 0.3  # the difference is there to be found
    else:
        assert alarms / SIMULATIONS == pytest.approx(0.05, abs=0.015)


def test_holm_keeps_the_family_at_its_level_where_single_tests_do_not():
    single = family = 0
    for comparisons, _, _ in simulate([0, 0, 0], True, 5, 'paired'):
        single += any(c.paired.p < 0.05 for c in comparisons)
        family += any(c.holm_p < 0.05 for c in comparisons)
    assert family / SIMULATIONS == pytest.approx(0.05, abs=0.015)
    assert single / SIMULATIONS > 0.08


def test_identical_arms_give_an_even_spread_of_p():
    random = np.random.default_rng(3)
    ps = np.array([[c.paired.p for c in all_pairs(random.normal(size=(4, 3)), 'paired')] for _ in range(1_000)])
    assert np.mean(ps < 0.05) == pytest.approx(0.05, abs=0.015)
    assert np.histogram(ps, bins=5, range=(0, 1))[0] / ps.size == pytest.approx(0.2, abs=0.02)
