"""The picture of a measure against masking rate."""

import numpy as np

from experiments.reporting.rates import RATES_PNG, rate_lines, rates_figure
from experiments.reporting.results import Measure, Results
from tests.experiments.report_case import make_config, make_records, make_report

RATES = (0.4, 0.15, 0.3)


def crossed(kinds: dict[str, dict], name: str = '{kind} {rate:.0%}') -> dict[str, dict]:
    return {
        name.format(kind=kind, rate=rate): {**changes, 'masking.corruption_rate': rate}
        for rate in RATES
        for kind, changes in kinds.items()
    }


UNITS = crossed({'tokens': {'masking.unit': 'token'}, 'words': {'masking.unit': 'word'}})


def made(folder, arms, left_out: str = '') -> Results:
    records = [record for record in make_records(list(arms), range(3)) if record.get('arm') != left_out]
    make_report(folder, make_config(arms), records)
    return Results([folder])


def test_arms_that_differ_in_their_rate_alone_share_a_line(tmp_path):
    results = made(tmp_path, UNITS)
    assert rate_lines(results) == {kind: [f'{kind} {rate}%' for rate in (15, 30, 40)] for kind in ('tokens', 'words')}
    assert (tmp_path / RATES_PNG).exists()
    page = (tmp_path / 'table.md').read_text()
    assert '## Quality against masking rate' in page and f']({RATES_PNG})' in page


def test_heights_are_means_over_seeds_and_seeds_are_shown(tmp_path):
    results = made(tmp_path, UNITS)
    (axis,) = rates_figure(results).axes
    assert axis.get_ylabel() == 'loss at 15%, nats a token'
    assert [label.get_text() for label in axis.get_xticklabels()] == ['15%', '30%', '40%']
    records = {arm: [] for arm in UNITS}
    for record in make_records(list(UNITS), range(3)):
        if (record.get('metric'), record.get('eval_rate')) == ('loss', 0.15) and record['arm'] in records:
            records[record['arm']].append(record['value'])
    for kind, line in zip(
        ('tokens', 'words'), [line for line in axis.lines if line.get_linestyle() == '-'], strict=True
    ):
        seeds = np.array([records[f'{kind} {rate}%'] for rate in (15, 30, 40)])
        assert seeds.shape == (3, 3) and results.primary == Measure('loss', 0.15, None)
        np.testing.assert_allclose(line.get_ydata(), seeds.mean(1))
        dots = [d for d in axis.lines if d.get_linestyle() == 'None' and d.get_color() == line.get_color()]
        np.testing.assert_allclose(np.array([d.get_ydata() for d in dots]).T, seeds)


def test_an_arm_without_figures_has_no_place(tmp_path):
    lines = rate_lines(made(tmp_path, UNITS, left_out='words 30%'))
    assert lines['words'] == ['words 15%', 'words 40%'] and len(lines['tokens']) == 3


def test_where_predicting_stands_apart_a_line_is_of_one_prediction_rate(tmp_path):
    """As in configs/prediction_rate.py: an arm that sets no prediction rate predicts what it corrupts."""
    shares = ((0.4, None), (0.4, 0.2), (0.2, None), (0.2, 0.4), (0.1, 0.4))
    arms = {
        f'corrupt {corrupted:.0%}, predict {predicted or corrupted:.0%}': {
            'masking.corruption_rate': corrupted,
            **({'masking.prediction_rate': predicted} if predicted else {}),
        }
        for corrupted, predicted in shares
    }
    assert rate_lines(made(tmp_path, arms)) == {
        f'predict {predicted}%': [f'corrupt {corrupted}%, predict {predicted}%' for corrupted in rates]
        for predicted, rates in ((40, (10, 20, 40)), (20, (20, 40)))
    }


def test_one_line_is_no_picture(tmp_path):
    """All arms then stand beside each other in the picture of differences."""
    results = made(tmp_path / 'rates', crossed({'masks': {}}))
    assert rate_lines(results) == {} and rates_figure(results) is None
    assert not (tmp_path / 'rates' / RATES_PNG).exists()
    schedules = {'a': {'masking.rate_points': [[1.0, 0.15]]}, 'b': {'masking.rate_points': [[1.0, 0.3]]}}
    assert rate_lines(made(tmp_path / 'schedules', schedules)) == {}


def test_lines_whose_arms_share_no_name_of_their_own_have_those_of_their_ends(tmp_path):
    arms = {
        f'try {number}': {'masking.unit': unit, 'masking.corruption_rate': rate}
        for number, (unit, rate) in enumerate((unit, rate) for unit in ('token', 'word') for rate in (0.4, 0.15))
    }
    assert list(rate_lines(made(tmp_path / 'numbers', arms))) == ['try 1 to try 0', 'try 3 to try 2']
    named = crossed(
        {'mask, cut': {'masking.unit': 'token'}, 'mask, kept': {'masking.unit': 'word'}}, '{kind}, {rate:g}'
    )
    assert list(rate_lines(made(tmp_path / 'commas', named))) == ['mask, cut', 'mask, kept']
    bare = {'15%': {}, '40%': {'masking.corruption_rate': 0.4}}
    bare |= {f'words {name}': {**changes, 'masking.unit': 'word'} for name, changes in bare.items()}
    assert list(rate_lines(made(tmp_path / 'bare', bare))) == ['15% to 40%', 'words 15% to words 40%']


def test_what_an_arm_is_counts_and_not_what_it_states(tmp_path):
    arms = {
        'a 15%': {'model.dropout': 0.1},  # the base's own
        'a 40%': {'masking.corruption_rate': 0.4},
        'b 15%': {'model.dropout': 0.0},
        'b 40%': {'model.dropout': 0.0, 'masking.corruption_rate': 0.4},
    }
    assert rate_lines(made(tmp_path, arms)) == {'a': ['a 15%', 'a 40%'], 'b': ['b 15%', 'b 40%']}


def test_a_schedule_stands_at_no_rate(tmp_path):
    falling = {'masking.rate_points': [[1.0, 0.15]]}
    schedules = {f'sched {rate}': {**falling, 'masking.corruption_rate': rate} for rate in (0.3, 0.4)}
    assert list(rate_lines(made(tmp_path, UNITS | schedules))) == ['tokens', 'words']


def test_steps_of_equal_flops_and_a_chosen_learning_rate_part_no_line(tmp_path):
    config, records = make_config(UNITS), make_records(list(UNITS), range(3))
    for place, own in enumerate(config['configs'].values()):
        signs = zip(own['stages'], (1, -1), strict=True)  # 600 in all, at which the case has its figures
        own['stages'] = [{**stage, 'steps': stage['steps'] + sign * place} for stage, sign in signs]
        own['optimizer']['learning_rate'] = 10.0**-place
    make_report(tmp_path / 'flops', config, records)
    assert rate_lines(Results([tmp_path / 'flops'])) == {}
    config['grid'] = {'field': 'optimizer.learning_rate', 'values': [1.0, 0.1], 'chosen': dict.fromkeys(UNITS, 1.0)}
    config['grid'] |= {'scores': {}, 'metric': 'loss', 'tuning_seed': 9}
    table, _ = make_report(tmp_path / 'grid', config, records)
    assert list(rate_lines(Results([tmp_path / 'grid']))) == ['tokens', 'words']
    assert 'nothing but that rate, in optimizer.learning_rate (chosen for each) and' in table
