"""What the report says where something is missing, failed or set up in another way."""

import numpy as np
import pytest
from scipy import stats

from experiments.reporting.records import read_csv
from tests.experiments.report_case import (
    ARMS,
    cells,
    figure,
    half_width,
    make_config,
    make_records,
    make_report,
    values_of,
)


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
    assert 'Machine: x86_64, 2 x cpu, 2026-11-30. Not counted: 1 start without an end on record' in table
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
    assert 'best for it on another seed: 15% at 0.002, 30% at 0.001 and 40% at 0.002.' in table
    assert 'the edge of the grid for 15%, 30% and 40%: a value beyond it may be better' in table
    config['grid']['values'] = [0.0005, 0.001, 0.002]
    table, _ = make_report(tmp_path, config, make_records(list(ARMS), range(3)))
    assert 'the edge of the grid for 15% and 40%: a value' in table
    table, _ = make_report(tmp_path, config, tuned + make_records(list(ARMS), range(3)))
    assert 'seeds (0, 1, 2)' in table and '@' not in (tmp_path / 'results.csv').read_text()


def test_arms_that_did_not_cost_the_same_are_said(tmp_path):
    arms = {'15%': {}, '30%': {'masking.corruption_rate': 0.3}}
    records = make_records(list(arms), range(3))
    table, _ = make_report(tmp_path, make_config(arms), records)
    assert 'of the baseline’s training FLOPs, 30% 1.13 times as many.' in table  # 1.30 / 1.15
    alike = [record | {'value': 1e12} if record.get('metric') == 'flops' else record for record in records]
    assert 'did not cost the same' not in make_report(tmp_path, make_config(arms), alike)[0]


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


def test_seeds_that_were_added_after_a_look_are_said(tmp_path):
    records = make_records(list(ARMS), range(4))
    for looks, said in (
        ([], None),
        ([[0, 1, 2, 3]], None),
        ([[0], [0, 1, 2], [0, 1, 2, 3]], 'reports were made on seed 0; on seeds 0, 1 and 2. p values and'),
    ):
        seen = [{'kind': 'report', 'seeds': seeds, 'arms': list(ARMS)} for seeds in looks]
        table, _ = make_report(tmp_path, make_config(ARMS, range(4)), records + seen)
        assert ('added after a look' in table) == bool(said) and (not said or said in table)
    alone = [record for record in records if record.get('arm') in ('15%', '', None)]
    table, _ = make_report(tmp_path, make_config({'15%': {}}, range(4)), alone + seen)
    assert 'added after a look' not in table  # nothing is tested


def test_arms_that_were_added_after_a_look_are_said(tmp_path):
    records = make_records(list(ARMS), range(3))
    for looks, said in (
        ([['15%', '30%', '40%']], None),
        ([['15%', '30%'], ['15%', '30%', '40%']], 'Added after a look at the results: arm 40%. p values'),
        ([['15%'], ['15%', '30%']], 'Added after a look at the results: arm 30% and 40%. p values'),
    ):
        seen = [{'kind': 'report', 'seeds': [0, 1, 2], 'arms': arms} for arms in looks]
        table, _ = make_report(tmp_path, make_config(ARMS, range(3)), records + seen)
        assert ('Added after a look' in table) == bool(said) and (not said or said in table)
