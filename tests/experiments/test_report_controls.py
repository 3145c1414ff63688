"""A/A controls in the report: their numbers, what is said of them, and that no arm's table changes by them."""

import json

import numpy as np
import pytest
from scipy import stats

from experiments.reporting import figures, write_report
from experiments.reporting.records import read_csv
from experiments.reporting.results import Results
from tests.experiments.report_case import (
    ARMS,
    RATES,
    cells,
    figure,
    make_config,
    make_records,
    make_report,
    values_of,
    with_controls,
    write_workdir,
)

TITLE = '## What chance looks like'
CAPTION = 'Loss at 15% at the seeds of the controls, nats'
CONTROL = '15% (A/A)'


def losses_by_replica(records, metric='loss', rate=0.15) -> dict[tuple[str, int], float]:
    return {
        (record['arm'], record['seed']): record['value']
        for record in records
        if record['kind'] == 'figure' and (record['metric'], record['eval_rate']) == (metric, rate)
    }


def section_of(table: str) -> str:
    return table.split(TITLE)[1].split('\n## ')[0]


def test_one_control_number_by_number(tmp_path):
    config, records = with_controls(make_config(ARMS), make_records(list(ARMS), range(3)), [('15%', 1)])
    table, page = make_report(tmp_path, config, records)
    loss = losses_by_replica(records)
    chance = loss[CONTROL, 1] - loss['15%', 1]
    arms = [loss[arm, 1] - loss['15%', 1] for arm in ('30%', '40%')]
    assert cells(table, CAPTION) == [
        ['difference', 'seed 1'],
        [f'{CONTROL} less 15%', f'{chance:+.3f}'],
        ['30% less 15%', f'{arms[0]:+.3f}'],
        ['40% less 15%', f'{arms[1]:+.3f}'],
    ]
    words = section_of(table)
    assert f'{CONTROL} less 15%, loss at 15%: {chance:+.3f} nats at seed 1 (one pair: no interval, not tested)' in words
    larger = sum(abs(arm) > abs(chance) for arm in arms)
    assert f'({abs(chance):.3f} at most): {larger} of 2 differences of the arms from 15% at the same seeds' in words
    assert 'What chance looks like' in page and f'<th scope="row">{CONTROL} less 15%</th>' in page
    terminal = write_report([tmp_path], tmp_path)
    assert CAPTION in terminal and 'Slots that the arms left empty' in terminal


def test_several_controls_number_by_number(tmp_path):
    twins = [('15%', 0), ('15%', 2), ('15%', 3)]
    config, records = with_controls(make_config(ARMS, range(4)), make_records(list(ARMS), range(4)), twins)
    table, _ = make_report(tmp_path, config, records)
    loss = losses_by_replica(records)
    first = np.array([loss['15%', seed] for _, seed in twins])
    header, *rows = cells(table, CAPTION)
    assert header == ['difference', 'seed 0', 'seed 2', 'seed 3', 'mean', 'range']
    for arm, row in zip((CONTROL, '30%', '40%'), rows, strict=True):
        found = np.array([loss[arm, seed] for _, seed in twins]) - first
        ends = f'{found.min():+.3f} to {found.max():+.3f}'
        assert row == [f'{arm} less 15%', *(f'{value:+.3f}' for value in found), f'{found.mean():+.3f}', ends]
    test = stats.ttest_rel([loss[CONTROL, seed] for _, seed in twins], first)
    low, high = test.confidence_interval(0.95)
    assert (
        f'{CONTROL} less 15%, loss at 15%: mean {rows[0][4]} nats over 3 pairs, which range from {rows[0][5]} '
        f'(95% interval {low:+.3f} to {high:+.3f}; paired t, p {test.pvalue:.3f}, outside Holm’s family).'
    ) in section_of(table)


def test_controls_of_several_arms_and_of_an_arm_that_is_not_the_baseline(tmp_path):
    twins = [('40%', 0), ('15%', 0), ('40%', 1)]
    config, records = with_controls(make_config(ARMS), make_records(list(ARMS), range(3)), twins)
    table, _ = make_report(tmp_path, config, records)
    loss = losses_by_replica(records)
    rows = cells(table, CAPTION)[1:]
    assert [row[0] for row in rows] == [f'{CONTROL} less 15%', '40% (A/A) less 40%', '30% less 15%', '40% less 15%']
    chance = loss[CONTROL, 0] - loss['15%', 0]
    assert rows[0][1:] == [f'{chance:+.3f}', '–', f'{chance:+.3f}', '–']
    assert rows[1][1:3] == [f'{loss["40% (A/A)", seed] - loss["40%", seed]:+.3f}' for seed in (0, 1)]
    sizes = [abs(chance), *(abs(loss['40% (A/A)', seed] - loss['40%', seed]) for seed in (0, 1))]
    arms = [abs(loss[arm, seed] - loss['15%', seed]) for arm in ('30%', '40%') for seed in (0, 1)]
    larger = sum(size > max(sizes) for size in arms)
    assert f'({max(sizes):.3f} at most): {larger} of 4 differences' in section_of(table)


def test_larger_and_smaller_arms_are_told_apart(tmp_path):
    records = make_records(['a', 'b', 'c'], range(1))
    for record in records:
        if record['kind'] == 'figure' and record['metric'] == 'loss' and record['arm']:
            record['value'] = {'a': 5.0, 'b': 5.1, 'c': 4.0}[record['arm']]
    arms = {'a': {}, 'b': {'masking.corruption_rate': 0.3}, 'c': {'masking.corruption_rate': 0.4}}
    config, records = with_controls(make_config(arms, range(1)), records, [('a', 0)])
    for record in records:
        if record.get('arm') == 'a (A/A)' and record.get('metric') == 'loss':
            record['value'] = 4.75
    table, _ = make_report(tmp_path, config, records)
    assert 'a (A/A) less a, loss at 15%: -0.250 nats at seed 0' in table
    assert '(0.250 at most): 1 of 2 differences of the arms from a' in table


def test_the_tables_of_the_arms_are_the_same_with_and_without_controls(tmp_path):
    config, records = make_config(ARMS), make_records(list(ARMS), range(3))
    without, page_without = make_report(tmp_path / 'without', config, records)
    table, page = make_report(tmp_path / 'with', *with_controls(config, records, [('15%', 0), ('15%', 1)]))
    assert TITLE not in without and 'A/A' not in without + page_without and TITLE in table
    diamonds = ' Diamonds: A/A controls, each less its twin, one a seed.'
    assert diamonds in table
    assert table.replace(TITLE + section_of(table) + '\n', '').replace(diamonds, '') == without
    guesses = [text.split('>Guesses</h2>')[1].split('<section')[0] for text in (page, page_without)]
    assert guesses[0] == guesses[1]


def test_results_csv_holds_the_controls_after_the_arms(tmp_path):
    plain = make_config(ARMS), make_records(list(ARMS), range(2))
    config, records = with_controls(*plain, [('15%', 1)])
    make_report(tmp_path / 'without', *plain)
    make_report(tmp_path / 'with', config, records)
    rows, others = (read_csv(tmp_path / name / 'results.csv') for name in ('with', 'without'))
    assert rows[: len(others)] == others
    of_control = [r for r in records if r.get('arm') == CONTROL and r['kind'] == 'figure']
    written = {(row.arm, row.seed, row.metric, row.eval_rate, row.task, row.step): row.value for row in rows}
    for record in of_control:
        key = tuple(record[name] for name in ('arm', 'seed', 'metric', 'eval_rate', 'task', 'step'))
        assert written[key] == record['value']
    assert len(rows) - len(others) == len(of_control)


def test_what_failed_or_is_not_there_yet_is_named(tmp_path):
    twins = [('15%', 0), ('15%', 1), ('15%', 2), ('30%', 0)]
    config, records = with_controls(make_config(ARMS), make_records(list(ARMS), range(3)), twins)
    records = [r for r in records if (r.get('arm'), r.get('seed'), r.get('step')) != (CONTROL, 1, 600)]
    records.append({'kind': 'failed', 'arm': CONTROL, 'seed': 0, 'step': 31})
    records.append({'kind': 'failed', 'arm': '30%', 'seed': 0, 'step': 44})
    table, _ = make_report(tmp_path, config, records)
    assert (
        f'Without a difference: {CONTROL}, seed 0 (failed at step 31), {CONTROL}, seed 1 (no result yet) and '
        '30% (A/A), seed 0 (its twin failed at step 44).'
    ) in section_of(table)
    rows = cells(table, CAPTION)[1:]
    assert [row[0] for row in rows] == [f'{CONTROL} less 15%', '30% less 15%', '40% less 15%']
    assert rows[0][1:3] == ['–', '–'] and rows[1][1] == '–' and rows[0][5] == '–'
    assert 'one pair' in section_of(table)
    outcome = table.split('## Outcome')[1].split('\n## ')[0]
    assert 'arm 30%, seed 0 (at step 44)' in outcome and 'A/A' not in outcome
    written = read_csv(tmp_path / 'results.csv')
    assert [(r.arm, r.seed, r.step) for r in written if r.metric == 'failed'] == [('30%', 0, 44), (CONTROL, 0, 31)]
    assert not [row for row in written if (row.arm, row.seed, row.metric) == (CONTROL, 0, 'loss')]


def test_a_control_without_any_figure_yet(tmp_path):
    config, records = with_controls(make_config(ARMS), make_records([], []), [('15%', 0)])
    table, _ = make_report(tmp_path, config, records)
    assert f'Without a difference: {CONTROL}, seed 0 (no result yet).' in section_of(table)
    assert CAPTION not in table and 'Diamonds' not in table


def test_one_arm_alone_with_its_control(tmp_path):
    config, records = with_controls(make_config({'15%': {}}, range(1)), make_records(['15%'], range(1)), [('15%', 0)])
    table, _ = make_report(tmp_path, config, records)
    assert [row[0] for row in cells(table, CAPTION)[1:]] == [f'{CONTROL} less 15%']
    assert 'at most' not in section_of(table)


def test_tuning_has_no_controls_here_and_an_arm_of_such_a_name_is_an_arm(tmp_path):
    config, records = make_config({'a': {}, 'a (A/A)': {'masking.noise': 5}}), make_records(['a', 'a (A/A)'], range(2))
    tuned = 'a @ optimizer.learning_rate=0.001 (A/A)'
    config['cohorts'].append({'name': '1', 'replicas': [[tuned, 1_000_000]]})
    config['configs'][tuned] = config['configs']['a']
    table, _ = make_report(tmp_path, config, records + [figure(tuned, 1_000_000, 'loss', 4.0, 0.15)])
    assert TITLE not in table and cells(table, 'Loss at 15%: arm less a')[1][0] == 'a (A/A)'
    assert '@' not in (tmp_path / 'results.csv').read_text()


def test_pooled_workdirs_pool_their_controls(tmp_path):
    whole = with_controls(
        make_config(ARMS, range(4)), make_records(list(ARMS), range(4)), [('15%', seed) for seed in (2, 3)]
    )
    make_report(tmp_path / 'whole', *whole)
    parts = []
    for seeds in ((0, 1), (2, 3)):  # the first workdir knows no control
        config = make_config(ARMS, seeds)
        kept = [record for record in whole[1] if record.get('seed') in (None, *seeds)]
        if seeds[0]:
            config['configs'] = json.loads(json.dumps(whole[0]['configs']))
            config['cohorts'][0]['replicas'] += [[CONTROL, seed] for seed in seeds]
        parts.append(write_workdir(tmp_path / f'part{seeds[0]}', config, kept))
    write_report(parts, tmp_path / 'pooled')
    tables = [(tmp_path / name / 'table.md').read_text() for name in ('whole', 'pooled')]
    assert section_of(tables[0]) == section_of(tables[1])
    assert cells(tables[1], CAPTION)[0] == ['difference', 'seed 2', 'seed 3', 'mean', 'range']


@pytest.mark.parametrize('primary', ['probe', 'accuracy'])
def test_other_primary_measures(tmp_path, primary):
    config, records = with_controls(
        make_config(ARMS, primary=primary), make_records(list(ARMS), range(3)), [('15%', 0)]
    )
    table, _ = make_report(tmp_path, config, records)
    values = values_of([r for r in records if r.get('seed') == 0], primary, None if primary == 'probe' else 0.15)
    chance = values[CONTROL][0] - values['15%'][0]
    name = 'Probe accuracy (century)' if primary == 'probe' else 'Accuracy at 15%'
    row = cells(table, f'{name} at the seeds of the controls, points')[1]
    assert row == [f'{CONTROL} less 15%', f'{chance:+.2f}']


def test_the_picture_has_a_diamond_a_pair(tmp_path):
    config, records = with_controls(
        make_config(ARMS), make_records(list(ARMS), range(3)), [('15%', 0), ('15%', 2), ('40%', 1)]
    )
    picture = figures.differences_figure(Results([write_workdir(tmp_path, config, records)]))
    assert len(picture.axes) == len(RATES)
    for axis, rate in zip(picture.axes, RATES, strict=True):
        loss = losses_by_replica(records, rate=rate)
        drawn = {
            (round(float(x), 9), int(y))
            for line in axis.lines
            if line.get_marker() == 'D'
            for x, y in zip(*line.get_data(), strict=True)
            if np.isfinite(x)
        }
        expected = {(loss[CONTROL, seed] - loss['15%', seed], 2) for seed in (0, 2)}
        expected.add((loss['40% (A/A)', 1] - loss['40%', 1], 3))
        assert drawn == {(round(x, 9), y) for x, y in expected}
    names = [label.get_text() for label in picture.axes[0].get_yticklabels()]
    assert names == ['30%', '40%', CONTROL, '40% (A/A)']


def test_guesses_are_those_of_arms(tmp_path):
    config, records = with_controls(make_config(ARMS), make_records(list(ARMS), range(3)), [('15%', 0)])
    records += [{'kind': 'failed', 'arm': arm, 'seed': 0, 'step': 9} for arm in ARMS]  # the control of seed 0 is sound
    _, page = make_report(tmp_path, config, records)
    assert 'from each arm’s replica of seed 1' in page
