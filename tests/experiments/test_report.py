"""Every number of the report against numpy and scipy, and what it says about them."""

import math
import re

import numpy as np
import pytest
from scipy import stats

from tests.experiments.report_case import (
    ARMS,
    RATES,
    cells,
    finished_report,
    half_width,
    make_config,
    make_records,
    make_report,
    values_of,
)


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
    return finished_report(tmp_path_factory.mktemp('masking_rate'))


def test_loss_table_number_by_number(finished):
    _, records, table, _ = finished
    header, *rows = cells(table, 'Loss, nats a token')
    assert header == ['arm', 'n', 'at 15%', 'at 30%', 'at 40%', 'own rate: not comparable']
    assert rows[0] == ['unigram entropy', '', '5.731', '5.731', '5.731', '']
    assert rows[1] == ['counts: unigram', '', '5.740', '5.740', '5.740', '']
    assert rows[2][2:5] == [f'{5.12 + rate / 9:.3f}' for rate in RATES]
    assert rows[3][2:5] == [f'{4.83 + rate / 3:.3f}' for rate in RATES]
    for (arm, own_rate), row in zip(zip(ARMS, RATES, strict=True), rows[4:], strict=True):
        assert row[:2] == [f'{arm} (baseline)' if arm == '15%' else arm, '4']
        for rate, cell in zip(RATES, row[2:5], strict=True):
            values = values_of(records, 'loss', rate)[arm]
            assert cell == f'{np.mean(values):.3f} ± {half_width(values):.3f}'
        values = values_of(records, 'own_loss')[arm]
        assert row[5] == f'{np.mean(values):.3f} ± {half_width(values):.3f} at {own_rate:.0%}'


def test_accuracy_perplexity_and_distance_to_unigram_number_by_number(finished):
    _, records, table, _ = finished
    below = cells(table, 'Nats below the unigram entropy of the held-out text')[1:]
    perplexity, accuracy = cells(table, 'Perplexity')[1:], cells(table, 'Accuracy, %')[1:]
    for index, arm in enumerate(ARMS):
        for column, rate in enumerate(RATES):
            losses = values_of(records, 'loss', rate)[arm]
            mean, half = np.mean(losses), half_width(losses)
            assert below[index][1 + column] == f'{5.731 - mean:.3f}'
            ends = f'({math.exp(mean - half):.2f} to {math.exp(mean + half):.2f})'
            assert perplexity[index][2 + column] == f'{math.exp(mean):.2f} {ends}'
            shares = values_of(records, 'accuracy', rate)[arm]
            assert accuracy[index][2 + column] == f'{np.mean(shares):.2f} ± {half_width(shares):.2f}'


def test_differences_number_by_number(finished):
    _, records, table, _ = finished
    losses = values_of(records, 'loss', 0.15)
    base = losses['15%']
    ps = [stats.ttest_rel(losses[arm], base).pvalue for arm in ('30%', '40%')]
    holm = [min(1, 2 * min(ps)), max(2 * min(ps), max(ps))]
    for arm, p, row in zip(('30%', '40%'), ps, cells(table, 'Loss at 15%: arm less 15%, nats')[1:], strict=True):
        paired, welch = stats.ttest_rel(losses[arm], base), stats.ttest_ind(losses[arm], base, equal_var=False)
        difference = np.mean(losses[arm]) - np.mean(base)
        ends = [test.confidence_interval(0.95) for test in (paired, welch)]
        assert row[0] == arm
        assert row[1] == f'{difference:+.3f} ({ends[0].low:+.3f} to {ends[0].high:+.3f})'
        assert row[3] == f'{difference:+.3f} ({ends[1].low:+.3f} to {ends[1].high:+.3f})'
        corrected = holm[0] if p == min(ps) else holm[1]
        for cell, value in zip((row[2], row[4], row[5]), (paired.pvalue, welch.pvalue, corrected), strict=True):
            assert cell == ('<0.001' if value < 0.0005 else f'{value:.3f}')
        assert row[6:] == ['4', f'{np.corrcoef(losses[arm], base)[0, 1]:.2f}']


def test_uncorrected_differences_number_by_number(finished):
    _, records, table, _ = finished
    header, *rows = cells(table, 'All other measures, uncorrected')
    assert header.count('p, uncorrected') == 2
    assert [row[0] for row in rows[::2]] == [
        'loss at 30%', 'loss at 40%', 'accuracy at 15%', 'accuracy at 30%', 'accuracy at 40%',
        'pseudo-log-likelihood', 'probe accuracy (century)',
    ]  # fmt: skip
    probes = values_of(records, 'probe')
    row = next(row for row in rows if row[:2] == ['probe accuracy (century)', '40%'])
    found = stats.ttest_rel(probes['40%'], probes['15%'])
    ends = found.confidence_interval(0.95)
    mean = np.mean(probes['40%'] - probes['15%'])
    assert row[2:4] == [f'{mean:+.2f} ({ends.low:+.2f} to {ends.high:+.2f})', f'{found.pvalue:.3f}']


def test_other_measures_and_cost_number_by_number(finished):
    _, records, table, _ = finished
    rows = cells(table, 'Other measures')[1:]
    assert rows[0] == ['commonest label', '', '–', '47.50']
    for arm, row in zip(ARMS, rows[1:], strict=True):
        likelihoods, probes = values_of(records, 'likelihood')[arm], values_of(records, 'probe')[arm]
        assert row[2] == f'{np.mean(likelihoods):.3f} ± {half_width(likelihoods):.3f}'
        assert row[3] == f'{np.mean(probes):.2f} ± {half_width(probes):.2f}'
    assert cells(table, 'Cost of one replica')[1:] == [
        ['15% (baseline)', '3.56 TFLOP', '1.00', '614 k', '92.2 k', '15.0%'],
        ['30%', '4.03 TFLOP', '1.13', '614 k', '184 k', '30.0%'],
        ['40%', '4.34 TFLOP', '1.22', '614 k', '246 k', '40.0%'],
    ]
    assert 'Wall time 4 min 12 s, of which training 3 min 18 s, shared by all replicas' in table


def test_what_the_seeds_could_find_is_found_four_times_in_five(finished):
    _, records, table, _ = finished
    losses = values_of(records, 'loss', 0.15)
    for arm, row in zip(('30%', '40%'), cells(table, 'Smallest difference')[1:], strict=True):
        spread, able = np.std(losses[arm] - losses['15%'], ddof=1), float(row[1])
        random = np.random.default_rng(0)

        def share(difference, n, random=random, spread=spread):
            return np.mean(stats.ttest_1samp(random.normal(difference, spread, (20_000, n)), 0, axis=1).pvalue < 0.05)

        assert share(able, 4) == pytest.approx(0.8, abs=0.03)
        assert share(able / 2, int(row[2])) > 0.78 and share(able / 2, int(row[2]) - 1) < 0.82
        assert row[3:] == ['one program', 'the same']


def test_what_the_report_says(finished):
    _, _, table, _ = finished
    for words in (
        'covers the seeds and not the choice of held-out text',
        'Own-rate losses are not comparable between arms',
        'no column alone says which arm is the better model',
        'They do not cover the held-out sample or its masks',
        'low-rate measure',
        'share of the commonest label',
        'none of them corrected',
        'noncentral t',
        'Fixed beforehand: the primary measure is loss at 15%, and paired t counts',
        'Published figures, from another scale',
        'Arm 30% against arm 15%, loss at 15%: ',
    ):
        assert words in table
    assert not re.search('winner|wins|outperform', table)
    published = cells(table, 'Ours beside published figures from another scale: A Paper, Table 7')
    assert published[0] == ['arm', 'ours: loss at 15%', 'MNLI']
    assert [row[2] for row in published[1:]] == ['84.2', '–', '84.5', '80.8']
    assert published[-1][:2] == ['80%', 'not run here']
    assert cells(table, 'Fields that differ') == [
        ['field', '15%', '30%', '40%'],
        ['masking.corruption_rate', '0.15', '0.3', '0.4'],
    ]


def test_a_difference_that_is_not_shown_is_not_called_equality(tmp_path):
    arms = {'a': {}, 'b': {'masking.noise': 1}}
    table, _ = make_report(tmp_path, make_config(arms), make_records(list(arms), range(3)))
    assert 'no difference shown' in table and 'would have been found 80% of the time' in table
    assert 'not evidence that there is none' in table
