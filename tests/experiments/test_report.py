"""The report from synthetic workdirs: every number against numpy, and every gap in words."""

import copy
import csv
import json
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from data.errors import UserError
from experiments import report
from experiments.reporting import write_report
from experiments.reporting.records import Row, read_csv, write_csv

RATES = (0.15, 0.3, 0.4)
LOSSES = {'15%': (4.75, 5.10, 5.30), '30%': (4.40, 4.70, 4.90), '40%': (4.45, 4.72, 4.88)}
"""Mean loss of each arm at each evaluation rate."""
STAGES = [{'length': 64, 'batch_size': 16, 'steps': 500}, {'length': 128, 'batch_size': 8, 'steps': 100}]


def make_config(arms: dict[str, dict], seeds=range(3), **ablation) -> dict:
    """config.json of an ablation; each arm as {dotted field: value}."""
    base = {
        'data': {'corpus': 'sotu', 'store': ''},
        'model': {'width': 64, 'dropout': 0.1, 'norm': 'pre'},
        'masking': {'corruption_rate': 0.15, 'noise': 0, 'rule': [1.0, 0.0, 0.0]},
        'optimizer': {'learning_rate': 0.002, 'micro_batches': 1},
        'stages': STAGES,
        'run': {'log_every': 50},
    }
    configs = {}
    for arm, changes in arms.items():
        configs[arm] = copy.deepcopy(base)
        for path, value in changes.items():
            section, name = path.split('.')
            configs[arm][section][name] = value
    return {
        'ablation': {
            'name': 'masking_rate',
            'claim': 'A claim & its paper.',
            'baseline': next(iter(arms), ''),
            'primary': 'loss',
            'primary_rate': 0.15,
            'comparison': 'paired',
            'all_pairs': False,
            'published': [],
            'arms': arms,
            **ablation,
        },
        'scale': 'cpu',
        'configs': configs,
        'command': 'python -m experiments.ablate configs/masking_rate.py',
        'tokenizer': 'abc',
        'cohorts': [{'name': '0', 'replicas': [[arm, seed] for seed in seeds for arm in arms]}],
        'grid': None,
    }


def figure(arm, seed, metric, value, rate=None, task=None, step=600, stage=1) -> dict:
    return {
        'kind': 'figure', 'arm': arm, 'seed': seed, 'stage': stage, 'step': step, 'metric': metric,
        'eval_rate': rate, 'task': task, 'ft_seed': None, 'value': value,
    }  # fmt: skip


def make_records(arms: list[str], seeds, losses=None, own=None) -> list[dict]:
    """What a finished ablation leaves: figures, curves, examples, counts and wall times."""
    run = {'kind': 'run', 'cohort': '0'}
    records = [{**run, 'event': 'start', 'host': 'x86_64, 2 x cpu', 'versions': {'jax': '0.10.2'}}]
    for index, arm in enumerate(arms):
        means = (losses or LOSSES).get(arm, (4.6, 4.9, 5.1))
        for seed in seeds:
            random = np.random.default_rng([index, seed])
            shared = np.random.default_rng([99, seed]).normal(0, 0.05)
            for rate, mean in zip(RATES, means, strict=True):
                value = mean + shared + random.normal(0, 0.02)
                records.append(figure(arm, seed, 'loss', value, rate))
                records.append(figure(arm, seed, 'accuracy', 0.9 - value / 7, rate))
            rate = (own or dict(zip(LOSSES, RATES, strict=True))).get(arm, 0.15)
            records.append(figure(arm, seed, 'own_loss', means[0] + 2 * rate + shared, rate))
            records.append(figure(arm, seed, 'own_accuracy', 0.2 + random.normal(0, 0.01), rate))
            records.append(figure(arm, seed, 'likelihood', -7.1 + random.normal(0, 0.1)))
            records.append(figure(arm, seed, 'probe', 61 + random.normal(0, 2), task='century'))
            for metric, value in (('flops', 3.1e12 * (1 + rate)), ('tokens', 614_400), ('targets', 614_400 * rate)):
                records.append(figure(arm, seed, metric, value))
            for step in range(100, 601, 100):
                value = means[0] + (5.9 - means[0]) * np.exp(-step / 150) + shared + random.normal(0, 0.01)
                records.append(figure(arm, seed, 'curve_loss', value, 0.15, step=step, stage=int(step > 500)))
            records += [example(arm, seed, rate, sentence, random) for rate in RATES for sentence in range(2)]
    records.append(figure('', None, 'unigram_entropy', 5.731, step=None, stage=None))
    for rate in RATES:
        for metric, value in (('unigram_loss', 5.74), ('left_loss', 5.12 + rate / 9), ('both_loss', 4.83 + rate / 3)):
            records.append(figure('', None, metric, value, rate, step=None, stage=None))
    records.append(figure('', None, 'probe_majority', 47.5, task='century', step=None, stage=None))
    return records + [{**run, 'event': 'trained', 'seconds': 198.0}, {**run, 'event': 'end', 'seconds': 252.4}]


def example(arm, seed, rate, sentence, random) -> dict:
    text = ['▁The', '▁state', '▁of', '▁the', '▁Un', 'ion', '▁is', '▁<strong>', '▁and', '▁our', '▁people', '▁have']
    text += ['▁never', '▁been', '▁more', '▁hope', 'ful', '.']
    masked = [position for position in range(len(text)) if (position * 7 + sentence) % 20 < rate * 20]
    guesses = {
        str(p): [[text[p] if random.random() < 0.3 else '▁of', 0.41], ['▁and', 0.12], ['▁the', 0.05]] for p in masked
    }
    return {
        'kind': 'example', 'arm': arm, 'seed': seed, 'rate': rate, 'sentence': sentence, 'pieces': text,
        'masked': masked, 'guesses': guesses,
    }  # fmt: skip


def write_workdir(folder: Path, config: dict, records: list[dict]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'config.json').write_text(json.dumps(config))
    (folder / 'metrics.jsonl').write_text(''.join(json.dumps(record) + '\n' for record in records))
    return folder


def make_report(folder: Path, config: dict, records: list[dict]) -> tuple[str, str]:
    """table.md and report.html of one workdir, which hold no nan, no None and no minus zero."""
    write_workdir(folder, config, records)
    terminal = write_report([folder], folder)
    table, page = (folder / 'table.md').read_text(), (folder / 'report.html').read_text()
    for text in (terminal, table, re.sub('base64,[^"]*', '', page)):
        assert not re.search(r'\bnan\b|\bNone\b|\binf\b|[-−]0\.0+\b(?!\d)', text)
    return table, page


def cells(table: str, caption: str) -> list[list[str]]:
    """Rows of the Markdown table under a caption, the header first."""
    lines = table.split(f'**{caption}')[1].split('\n\n')[1].splitlines()
    rows = [[cell.strip() for cell in line.strip('|').split(' | ')] for line in lines]
    return [rows[0], *rows[2:]]


def values_of(records, metric, rate=None) -> dict[str, np.ndarray]:
    """Arm -> final values in the order of the seeds, by a plain loop."""
    found: dict[str, list] = {}
    for record in records:
        wanted = record['kind'] == 'figure' and record['metric'] == metric and record['arm']
        if wanted and rate in (None, record['eval_rate']):
            found.setdefault(record['arm'], []).append(record['value'])
    return {arm: np.array(values) for arm, values in found.items()}


def half_width(values) -> float:
    return stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))


ARMS = {'15%': {}, '30%': {'masking.corruption_rate': 0.3}, '40%': {'masking.corruption_rate': 0.4}}
SEEDS = range(4)
PUBLISHED = [
    {'arm': arm, 'metric': 'MNLI', 'value': value, 'source': 'A Paper, Table 7'}
    for arm, value in (('15%', 84.2), ('40%', 84.5), ('80%', 80.8))
]


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
    """A finished ablation: its folder, records, table.md and report.html."""
    folder = tmp_path_factory.mktemp('masking_rate')
    records = make_records(list(ARMS), SEEDS)
    return folder, records, *make_report(folder, make_config(ARMS, SEEDS, published=PUBLISHED), records)


# Numbers


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
            shares = 100 * values_of(records, 'accuracy', rate)[arm]
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
        ['15% (baseline)', '3.56 TFLOP', '1.00', '614 k', '92.2 k'],
        ['30%', '4.03 TFLOP', '1.13', '614 k', '184 k'],
        ['40%', '4.34 TFLOP', '1.22', '614 k', '246 k'],
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


# Words


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
    assert cells(table, 'Ours beside A Paper, Table 7 (another scale)')[1:][-1] == ['80%', 'not run here', '80.8']
    assert cells(table, 'Ours beside A Paper, Table 7')[2][2] == '–'
    assert cells(table, 'Fields that differ') == [
        ['field', '15%', '30%', '40%'],
        ['masking.corruption_rate', '0.15', '0.3', '0.4'],
    ]


def test_a_difference_that_is_not_shown_is_not_called_equality(tmp_path):
    arms = {'a': {}, 'b': {'masking.noise': 1}}
    table, _ = make_report(tmp_path, make_config(arms), make_records(list(arms), range(3)))
    assert 'no difference shown' in table and 'would have been found 80% of the time' in table
    assert 'not evidence that there is none' in table


def test_failed_and_unfinished_replicas_are_named_and_left_out(tmp_path):
    records = make_records(list(ARMS), range(3))
    gone = [r for r in records if r.get('arm') == '30%' and r.get('seed') == 2 and r.get('step') == 600]
    records = [r for r in records if r not in gone]
    records += [{'kind': 'failed', 'arm': '40%', 'seed': seed, 'step': 77} for seed in (0, 2)]
    table, _ = make_report(tmp_path, make_config(ARMS, range(3)), records)
    assert 'Failed, and left out of every figure: arm 40%, seed 0 (at step 77); arm 40%, seed 2 (at step 77).' in table
    assert 'Planned, and without a result yet: arm 30%, seed 2.' in table
    losses = values_of(records, 'loss', 0.15)
    rows = cells(table, 'Loss, nats a token')[5:]
    assert rows[1][:3] == ['30%', '2', f'{np.mean(losses["30%"]):.3f} ± {half_width(losses["30%"]):.3f}']
    assert rows[2][:3] == ['40%', '1', f'{losses["40%"][1]:.3f} (one seed)']
    tests = cells(table, 'Loss at 15%: arm less 15%, nats')[1:]
    p = stats.ttest_rel(losses['30%'], losses['15%'][:2]).pvalue
    assert tests[0][5:] == [f'{2 * p:.3f}', '2', '–']  # the arm that cannot be tested stays in the family
    assert tests[1] == [
        '40%', f'{losses["40%"][1] - losses["15%"][1]:+.3f} (one pair)', 'not tested',
        f'{losses["40%"][1] - np.mean(losses["15%"]):+.3f} (one seed)', 'not tested', 'not tested', '1', '–',
    ]  # fmt: skip
    written = read_csv(tmp_path / 'results.csv')
    assert {row.seed for row in written if row.arm == '40%' and row.metric == 'loss'} == {1}
    assert [(r.arm, r.seed, r.step) for r in written if r.metric == 'failed'] == [('40%', 0, 77), ('40%', 2, 77)]


def test_a_replica_that_stopped_early_has_no_final_figure(tmp_path):
    records = make_records(['a', 'b'], range(2))
    early = [figure('b', 2, 'loss', 9.9, 0.15, step=500, stage=0), figure('a', 2, 'loss', 4.0, 0.15)]
    table, _ = make_report(tmp_path, make_config({'a': {}, 'b': {'masking.noise': 1}}), records + early)
    assert [row[1] for row in cells(table, 'Loss, nats a token')[5:]] == ['3', '2']
    assert '9.900' not in table


@pytest.mark.parametrize('seeds', [1, 2])
def test_one_seed_and_no_spread_are_said_in_words(tmp_path, seeds):
    records = make_records(['a', 'b'], range(seeds))
    for record in records:
        if record['kind'] == 'figure' and record['metric'] in ('loss', 'curve_loss'):
            record['value'] = 4.0 if record['arm'] == 'a' else 4.5
    table, _ = make_report(tmp_path, make_config({'a': {}, 'b': {'masking.noise': 1}}, range(seeds)), records)
    words = 'one seed' if seeds == 1 else 'all seeds equal'
    assert cells(table, 'Loss, nats a token')[5][2] == f'4.000 ({words})'
    row = cells(table, 'Loss at 15%: arm less a, nats')[1]
    words = ('one pair', 'one seed') if seeds == 1 else ('same difference in every seed', 'no spread in either arm')
    assert row[1:6] == [f'+0.500 ({words[0]})', 'not tested', f'+0.500 ({words[1]})', 'not tested', 'not tested']
    assert f'loss at 15%: +0.500 ({words[0]}); not tested.' in table


def test_a_run_without_any_figure_yet_and_one_arm_alone(tmp_path):
    table, _ = make_report(tmp_path / 'begun', make_config(ARMS), make_records([], [])[:1])
    assert 'Planned, and without a result yet: arm 15%, seed 0, 1 and 2; arm 30%' in table
    assert 'Machine: x86_64, 2 x cpu. 1 start ended without a record' in table
    table, page = make_report(tmp_path / 'one', make_config({'15%': {}}), make_records(['15%'], range(3)))
    assert 'One arm alone: nothing to compare.' in table and 'differences.png' not in table
    assert page.count('<img') == 1


def test_a_figure_that_is_no_number_is_named(tmp_path):
    records = make_records(list(ARMS), range(3)) + [figure('30%', 1, 'likelihood', None)]
    table, _ = make_report(tmp_path, make_config(ARMS), records)
    assert 'Not a finite number, and left out: likelihood of arm 30%, seed 1.' in table


def test_welch_counts_where_the_config_says_so(tmp_path):
    close = {'15%': (4.75, 5.1, 5.3), '30%': (4.65, 5.0, 5.2), '40%': (4.68, 5.0, 5.2)}
    records = make_records(list(ARMS), range(3), close)
    table, _ = make_report(tmp_path, make_config(ARMS, comparison='welch'), records)
    losses = values_of(records, 'loss', 0.15)
    ps = [stats.ttest_ind(losses[arm], losses['15%'], equal_var=False).pvalue for arm in ('30%', '40%')]
    expected = [2 * p if p == min(ps) else max(*ps, 2 * min(ps)) for p in ps]
    rows = cells(table, 'Loss at 15%: arm less 15%, nats')[1:]
    assert [row[5] for row in rows] == [f'{p:.3f}' for p in expected]
    assert 'Welch t counts' in table and 'Welch t, Holm-corrected' in table


def test_a_primary_measure_without_a_rate(tmp_path):
    table, _ = make_report(tmp_path, make_config(ARMS, primary='probe'), make_records(list(ARMS), range(3)))
    assert 'Probe accuracy (century): arm less 15%, points' in table
    assert 'Arm 30% against arm 15%, probe accuracy (century):' in table


def test_structure_programs_and_initial_weights(tmp_path):
    arms = {'a': {}, 'wide': {'model.width': 96}, 'wet': {'model.dropout': 0.3}}
    config = make_config(arms)
    config['cohorts'] = [
        {'name': str(number), 'replicas': [[arm, seed] for seed in range(3)]} for number, arm in enumerate(arms)
    ]
    table, _ = make_report(tmp_path, config, make_records(list(arms), range(3)))
    assert [row[3:] for row in cells(table, 'Smallest difference')[1:]] == [
        ['two programs', 'the same where structures agree'],
        ['two programs', 'the same'],
    ]


def test_tuning_is_shown_and_stays_out_of_the_tables(tmp_path):
    config = make_config(ARMS)
    config['grid'] = {
        'field': 'optimizer.learning_rate', 'values': [0.001, 0.002], 'tuning_seed': 1_000_000,
        'chosen': {'15%': 0.002, '30%': 0.001, '40%': 0.002},
        'scores': {'15%': {'0.001': 5.1, '0.002': 4.9}, '30%': {'0.001': 4.8}, '40%': {'0.001': 5.2, '0.002': 5.0}},
    }  # fmt: skip
    tuned = make_records(['15% @ optimizer.learning_rate=0.001'], [1_000_000])
    table, _ = make_report(tmp_path, config, tuned + make_records(list(ARMS), range(3)))
    assert cells(table, 'Scores on the tuning seed')[1:3] == [
        ['15%', '5.100', '4.900', '0.002'],
        ['30%', '4.800', 'failed', '0.001'],
    ]
    assert 'seeds (0, 1, 2)' in table and '@' not in (tmp_path / 'results.csv').read_text()


def test_all_pairs_of_a_control(tmp_path):
    arms = {f'noise {number}': {'masking.noise': number} for number in range(8)}
    records = make_records(list(arms), range(3))
    table, page = make_report(tmp_path, make_config(arms, all_pairs=True), records)
    losses = list(values_of(records, 'loss', 0.15).values())
    ps = [stats.ttest_rel(b, a).pvalue for i, a in enumerate(losses) for b in losses[i + 1 :]]
    assert [row[2] for row in cells(table, 'Every pair')[1:]] == [f'{p:.3f}' for p in ps]
    below = sum(p < 0.05 for p in ps)
    low, high = stats.binomtest(below, 28).proportion_ci(method='exact')
    assert f'{below} of 28 p values are below 0.05: {below / 28:.1%} (exact binomial 95% interval' in table
    assert f'{low:.1%} to {high:.1%}' in table and 'The pairs are not independent' in table
    assert page.count('<img') == 3


# Files


def test_results_csv_holds_the_figures(finished):
    folder, records, _, _ = finished
    with (folder / 'results.csv').open(newline='') as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == ['arm', 'seed', 'stage', 'step', 'metric', 'eval_rate', 'task', 'ft_seed', 'value']

    def key(line):
        return tuple('' if line[name] is None else str(line[name]) for name in Row._fields[:-1])

    written = {key(line): float(line['value']) for line in lines}
    assert written == {key(record): record['value'] for record in records if record['kind'] == 'figure'}
    assert len(written) == len(lines)


TEXT = st.text(st.characters(exclude_categories=['Cs'], exclude_characters='\r'), min_size=1)
ROWS = st.builds(
    Row,
    arm=st.just('') | TEXT,
    seed=st.none() | st.integers(0, 2**32),
    stage=st.none() | st.integers(0, 3),
    step=st.none() | st.integers(0, 10**7),
    metric=TEXT,
    eval_rate=st.none() | st.floats(0, 1),
    task=st.none() | TEXT,
    ft_seed=st.none() | st.integers(0, 9),
    value=st.floats(allow_nan=False, allow_infinity=False),
)


@given(st.lists(ROWS, max_size=4))
@settings(deadline=None)
def test_results_csv_round_trip(tmp_path_factory, rows):
    path = tmp_path_factory.getbasetemp() / 'rows.csv'
    write_csv(rows, path)
    assert read_csv(path) == rows


class Page(HTMLParser):
    """Collects tags and checks that they close in order."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.tags = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ('meta', 'img'):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_from_elsewhere(finished):
    folder, _, _, text = finished
    page = Page(text)
    assert page.open == []
    names = [tag for tag, _ in page.tags]
    assert not {'script', 'link', 'iframe'} & set(names)
    assert 'http' not in re.sub('base64,[^"]*', '', text) and 'url(' not in text
    images = [attributes for tag, attributes in page.tags if tag == 'img']
    assert len(images) == 2 and all(image['src'].startswith('data:image/png;base64,') for image in images)
    assert all(image['alt'] for image in images)
    assert ('meta', {'name': 'viewport', 'content': 'width=device-width, initial-scale=1'}) in page.tags
    assert {path.name for path in folder.glob('*.png')} == {'differences.png', 'curves.png'}
    assert 'A claim &amp; its paper.' in text


def test_examples_stand_beside_the_truth(finished):
    _, records, _, page = finished
    assert '<strong>' not in page and '&lt;strong&gt;' in page
    assert [page.count(f'<h3>Masked at {rate:.0%}</h3>') for rate in RATES] == [2, 2, 2]
    shown = next(r for r in records if r['kind'] == 'example' and r['rate'] == 0.15 and r['sentence'] == 1)
    assert page.count('<table class="guesses">') == 6
    truth = shown['pieces'][shown['masked'][0]].replace('▁', '·')
    assert f'<th scope="row">{truth}</th>' in page
    guessed = shown['guesses'][str(shown['masked'][0])][0]
    bold = guessed[0] == shown['pieces'][shown['masked'][0]]
    text = f'{guessed[0].replace("▁", "·")}&nbsp;<small>41</small>'
    assert (f'<b>{text}</b>' if bold else f'<td>{text}') in page


def test_an_old_picture_goes(tmp_path):
    (tmp_path / 'p_values.png').write_bytes(b'old')
    make_report(tmp_path, make_config(ARMS), make_records(list(ARMS), range(2)))
    assert not (tmp_path / 'p_values.png').exists()


def test_the_order_of_the_arms_changes_no_number(tmp_path):
    records = make_records(list(ARMS), range(3))
    first, _ = make_report(tmp_path / 'a', make_config(ARMS), records)
    turned = {arm: ARMS[arm] for arm in reversed(ARMS)}
    other, _ = make_report(tmp_path / 'b', make_config(turned, baseline='15%'), records[::-1])
    for caption in ('Loss, nats a token', 'Accuracy, %', 'Loss at 15%: arm less 15%', 'Smallest difference'):
        assert sorted(cells(first, caption)) == sorted(cells(other, caption))


# Several workdirs


def test_pooled_workdirs_are_one_ablation(tmp_path):
    records = make_records(list(ARMS), range(4))
    whole, _ = make_report(tmp_path / 'whole', make_config(ARMS, range(4)), records)
    parts = []
    for seeds in ((0, 1), (2, 3)):
        config = make_config(ARMS, seeds)
        config['command'] = f'some command {seeds}'
        for arm in config['configs'].values():
            arm['run']['log_every'] = 7 + seeds[0]
            arm['optimizer']['micro_batches'] = 1 + seeds[0]
        kept = [record for record in records if record.get('seed') in (None, *seeds)]
        parts.append(write_workdir(tmp_path / f'part{seeds[0]}', config, kept))
    report.main([str(part) for part in parts])
    pooled = (tmp_path / 'part0_pooled' / 'table.md').read_text()
    for caption in ('Loss, nats a token', 'Accuracy, %', 'Loss at 15%: arm less 15%', 'Smallest difference', 'Other'):
        assert cells(pooled, caption) == cells(whole, caption)
    assert f'Pooled from {parts[0]} and {parts[1]}.' in pooled and pooled.count('Wall time 4 min 12 s') == 2
    assert read_csv(tmp_path / 'part0_pooled' / 'results.csv') == read_csv(tmp_path / 'whole' / 'results.csv')
    assert not (parts[0] / 'table.md').exists()


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        (lambda c: c['configs']['30%']['optimizer'].update(learning_rate=0.1), 'optimizer.learning_rate (arm 30%)'),
        (lambda c: [a['stages'][0].update(steps=9) for a in c['configs'].values()], 'differ in stages.0.steps:'),
        (lambda c: c['ablation'].update(comparison='welch'), 'ablation.comparison'),
        (lambda c: c.update(scale='smoke', tokenizer='other'), 'scale, tokenizer'),
        (lambda c: c['ablation']['arms'].pop('40%'), 'arm 40% (only in one)'),
    ],
)
def test_workdirs_that_differ_are_refused_by_name(tmp_path, change, words):
    first = write_workdir(tmp_path / 'a', make_config(ARMS, range(2)), make_records(list(ARMS), range(2)))
    config = copy.deepcopy(make_config(ARMS, range(2, 4)))
    change(config)
    second = write_workdir(tmp_path / 'b', config, make_records(list(ARMS), range(2, 4)))
    with pytest.raises(UserError, match=re.escape(words)):
        write_report([first, second], tmp_path / 'out')
    assert not (tmp_path / 'out').exists()


def test_a_replica_twice_and_another_held_out_text_are_refused(tmp_path):
    first = write_workdir(tmp_path / 'a', make_config(ARMS), make_records(list(ARMS), range(3)))
    with pytest.raises(UserError, match='arm 15%, seed 0 is in .* and in'):
        write_report([first, first], tmp_path / 'out')
    records = make_records(list(ARMS), range(3, 5)) + [figure('', None, 'unigram_entropy', 5.5, step=None, stage=None)]
    second = write_workdir(tmp_path / 'b', make_config(ARMS), records)
    with pytest.raises(UserError, match='unigram_entropy .* held-out text differs'):
        write_report([first, second], tmp_path / 'out')


# The command


def run_command(*args: str) -> subprocess.CompletedProcess:
    code = (
        'import sys; from experiments import cli, report\n'
        'try: cli.run(report.main)\n'
        "finally: assert not {'jax', 'flax', 'orbax'} & set(sys.modules), 'jax was imported'"
    )
    return subprocess.run([sys.executable, '-c', code, *args], capture_output=True, text=True)


def test_the_command_prints_the_table_without_jax(finished):
    folder, _, _, _ = finished
    before = (folder / 'report.html').read_bytes()
    done = run_command(str(folder))
    assert done.returncode == 0, done.stderr
    assert '| 15% (baseline) ' in done.stdout and done.stdout.rstrip().endswith('report.html')
    assert (folder / 'report.html').read_bytes() == before  # the same records give the same bytes


@pytest.mark.parametrize(
    ('make', 'words'),
    [
        (lambda folder: None, 'not a workdir'),
        (lambda folder: (folder / 'config.json').write_text('{'), 'cannot be read'),
        (lambda folder: (folder / 'config.json').write_text(json.dumps(make_config(ARMS))), 'metrics.jsonl'),
        (lambda folder: write_workdir(folder, make_config({}, baseline='x'), []), 'no trained arm yet'),
    ],
)
def test_a_workdir_that_is_none_gets_one_line(tmp_path, make, words):
    make(tmp_path)
    with pytest.raises(UserError, match=words) as error:
        report.main([str(tmp_path)])
    assert '\n' not in str(error.value)


def test_a_mistake_ends_with_code_2(tmp_path):
    done = run_command(str(tmp_path / 'none'))
    assert done.returncode == 2 and done.stderr.startswith('error: ') and done.stderr.count('\n') == 1
    with pytest.raises(UserError, match='name a workdir'):
        report.main([])
