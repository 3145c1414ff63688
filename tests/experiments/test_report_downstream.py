"""The downstream part of the report, number by number, on simulated fine-tunings."""

import copy

import numpy as np
import pytest
from scipy import stats

from data.errors import UserError
from data.tasks.baselines import is_degenerate, majority
from data.tasks.scores import scores
from data.tasks.task import Answer, Question, TaggedSentence, Task, TextExample
from experiments.reporting import write_report
from experiments.reporting.records import read_csv
from tests.experiments.report_case import (
    ARMS,
    cells,
    half_width,
    make_config,
    make_records,
    make_report,
    write_workdir,
)
from train.downstream import task_figures
from train.finetuning.tune import Result

SEEDS, FT_SEEDS = range(4), range(3)
CAPTION = 'century: mean ± half of CI95 over pretraining seeds'


def fine_tuned(arm, seed, ft_seed, metric, value, task='century', step=600) -> dict:
    return {
        'kind': 'figure', 'arm': arm, 'seed': seed, 'stage': 1, 'step': step, 'metric': metric, 'eval_rate': None,
        'task': task, 'ft_seed': ft_seed, 'value': value,
    }  # fmt: skip


def about(task='century', data='abc', primary='accuracy', **fields) -> dict:
    return {
        'kind': 'task', 'task': task, 'data': data, 'primary': primary, 'examples': {'train': 1898, 'dev': 828},
        'chosen_by': '', 'points': ['batch 32, learning rate 0.001, 3 epochs'], 'features': 0, 'notes': [], **fields,
    }  # fmt: skip


def simulated(task='century', metrics=('accuracy', 'macro_f1')) -> tuple[list[dict], dict]:
    """Records of a task, and metric -> arm -> values [seeds, fine-tuning seeds]."""
    random = np.random.default_rng(3)
    records, values = [about(task, primary=metrics[0])], {metric: {} for metric in metrics}
    for place, arm in enumerate(['random initialisation', *ARMS]):
        for metric in metrics:
            values[metric][arm] = (
                60 + 3 * place + random.normal(0, 1, (len(SEEDS), 1)) + random.normal(0, 2, (len(SEEDS), len(FT_SEEDS)))
            )
        step = None if arm == 'random initialisation' else 600
        for seed in SEEDS:
            for ft_seed in FT_SEEDS:
                found = {metric: values[metric][arm][seed, ft_seed] for metric in metrics}
                found['degenerate'] = float((arm, seed, ft_seed) == ('40%', 1, 2))
                records += [fine_tuned(arm, seed, ft_seed, name, v, task, step) for name, v in found.items()]
    for arm, value in (('majority class', 46.1), ('TF-IDF', 69.2)):
        records += [fine_tuned(arm, None, None, metric, value, task, None) for metric in metrics]
    return records, values


@pytest.fixture(scope='module')
def report(tmp_path_factory):
    records, values = simulated()
    folder = tmp_path_factory.mktemp('downstream')
    records = make_records(list(ARMS), SEEDS) + records
    return folder, values, *make_report(folder, make_config(ARMS, SEEDS), records)


def test_one_fine_tuning_seed_is_not_called_several(report, tmp_path):
    assert 'with several fine-tuning seeds' in report[2]
    records = make_records(list(ARMS), SEEDS) + [r for r in simulated()[0] if r.get('ft_seed') in (None, 0)]
    table, _ = make_report(tmp_path, make_config(ARMS, SEEDS), records)
    assert 'once, with one fine-tuning seed for all arms' in table and 'several fine-tuning' not in table


def test_a_task_on_which_pretraining_gains_nothing_is_said_to_tell_nothing(report, tmp_path):
    said = 'century: no arm is above the same encoder without pretraining'
    assert said not in report[2]
    records = make_records(list(ARMS), SEEDS) + simulated()[0]
    for record in records:
        if record.get('arm') == 'random initialisation' and record['metric'] == 'accuracy':
            record['value'] += 30
    assert said in make_report(tmp_path, make_config(ARMS, SEEDS), records)[0]


def test_arms_stand_beside_what_needs_no_pretraining(report):
    _, values, table, _ = report
    header, *rows = cells(table, CAPTION)
    assert header == [
        'arm', 'n', 'accuracy, %', 'macro F1, %', 'sd over seeds', 'sd over fine-tunings', 'learnt nothing'
    ]  # fmt: skip
    assert rows[0] == ['majority class', '', '46.10', '46.10', '', '', '']
    assert rows[1] == ['TF-IDF', '', '69.20', '69.20', '', '', '']
    assert [row[0] for row in rows[2:]] == ['random initialisation', '15% (baseline)', '30%', '40%']
    for row, arm in zip(rows[2:], ['random initialisation', *ARMS], strict=True):
        accuracy = values['accuracy'][arm]
        means = accuracy.mean(axis=1)
        within = np.sqrt(accuracy.var(axis=1, ddof=1).mean())
        f1 = values['macro_f1'][arm].mean(axis=1)
        assert row[1:] == [
            '4',
            f'{means.mean():.2f} ± {half_width(means):.2f}',
            f'{f1.mean():.2f} ± {half_width(f1):.2f}',
            f'{means.std(ddof=1):.2f}',
            f'{within:.2f}',
            f'{int(arm == "40%")} of 12',
        ]


def test_differences_are_paired_by_pretraining_seed_and_not_corrected(report):
    _, values, table, page = report
    header, *rows = cells(table, 'Downstream tasks: arm less 15%, points, uncorrected')
    assert [row[:2] for row in rows] == [
        [f'{metric} (century)', arm] for metric in ('accuracy', 'macro F1') for arm in ('30%', '40%')
    ]
    for row in rows:
        found = values['accuracy' if row[0].startswith('accuracy') else 'macro_f1']
        base, other = found['15%'].mean(axis=1), found[row[1]].mean(axis=1)
        interval = stats.ttest_rel(other, base).confidence_interval(0.95)
        p = stats.ttest_rel(other, base).pvalue
        assert row[2] == f'{np.mean(other - base):+.2f} ({interval.low:+.2f} to {interval.high:+.2f})'
        assert row[3] == (f'{p:.3f}' if p >= 0.0005 else '<0.001') and row[4] == '4'
    assert '(century)' not in str(cells(table, 'All other measures, uncorrected')[1:3])
    assert 'random initialisation' in page


def test_a_run_that_learnt_nothing_is_flagged_and_stays_in_the_mean(report):
    folder, values, table, _ = report
    assert 'century: 1 of 48 fine-tunings learnt nothing (one answer always' in table
    rows = [row for row in read_csv(folder / 'results.csv') if row.metric == 'degenerate' and row.value]
    assert [(row.arm, row.seed, row.task, row.ft_seed) for row in rows] == [('40%', 1, 'century', 2)]
    means = values['accuracy']['40%'].mean(axis=1)
    assert cells(table, CAPTION)[6][2].startswith(f'{means.mean():.2f} ±')


def test_results_csv_holds_a_row_for_each_fine_tuning(report):
    folder, values, *_ = report
    rows = [row for row in read_csv(folder / 'results.csv') if (row.metric, row.task) == ('accuracy', 'century')]
    found = {(row.arm, row.seed, row.ft_seed): row.value for row in rows if row.ft_seed is not None}
    assert found == {
        (arm, seed, ft_seed): values['accuracy'][arm][seed, ft_seed]
        for arm in values['accuracy']
        for seed in SEEDS
        for ft_seed in FT_SEEDS
    }
    assert [(row.arm, row.seed) for row in rows if row.ft_seed is None] == [('majority class', None), ('TF-IDF', None)]


def test_the_accuracy_of_masked_tokens_keeps_to_itself(report):
    assert cells(report[2], 'Accuracy, %')[0] == ['arm', 'n', 'at 15%', 'at 30%', 'at 40%', 'own rate: not comparable']


def test_a_task_as_the_primary_measure_is_tested_with_correction(tmp_path):
    records, values = simulated()
    config = make_config(ARMS, SEEDS, primary='accuracy', primary_task='century')
    table, _ = make_report(tmp_path, config, make_records(list(ARMS), SEEDS) + records)
    rows = cells(table, 'Accuracy (century): arm less 15%, points')[1:]
    means = {arm: found.mean(axis=1) for arm, found in values['accuracy'].items()}
    ps = [stats.ttest_rel(means[arm], means['15%']).pvalue for arm in ('30%', '40%')]
    low, high = sorted(ps)
    expected = {low: min(1, 2 * low), high: max(min(1, 2 * low), high)}
    assert [row[5] for row in rows] == [f'{expected[p]:.3f}' if expected[p] >= 0.0005 else '<0.001' for p in ps]
    uncorrected = cells(table, 'Downstream tasks: arm less 15%, points, uncorrected')[1:]
    assert {row[0] for row in uncorrected} == {'macro F1 (century)'}
    assert 'Arm 40% against arm 15%, accuracy (century):' in table


def test_ours_stand_beside_the_same_task_in_a_published_table(tmp_path):
    records, values = simulated('MNLI', ('accuracy',))
    published = [
        {'arm': arm, 'metric': metric, 'value': 84.2, 'source': 'A Paper'} for arm in ARMS for metric in ('MNLI', 'QQP')
    ]
    config = make_config(ARMS, SEEDS, published=published)
    table, _ = make_report(tmp_path, config, make_records(list(ARMS), SEEDS) + records)
    header, first, *_ = cells(table, 'Ours beside published figures from another scale: A Paper')
    assert header == ['arm', 'ours: accuracy (MNLI)', 'MNLI', 'QQP']
    means = values['accuracy']['15%'].mean(axis=1)
    assert first == ['15%', f'{means.mean():.2f} ± {half_width(means):.2f}', '84.2', '84.2']


def with_tasks(config: dict, *titles: str, data_dir: str = '') -> dict:
    config = copy.deepcopy(config)
    for each in config['configs'].values():
        tasks = [{'name': title, 'task': {'task': 'mnli', 'data_dir': title}} for title in titles]
        each['evaluation'] = {'tasks': tasks, 'data_dir': data_dir}
    return config


def test_a_task_without_its_files_is_absent_and_the_report_says_so(tmp_path):
    records = make_records(list(ARMS), SEEDS)
    table, _ = make_report(tmp_path / 'none', with_tasks(make_config(ARMS, SEEDS), 'MNLI', 'NER'), records)
    assert 'Not evaluated: MNLI and NER (its files need --evaluation.data_dir).' in table
    config = with_tasks(make_config(ARMS, SEEDS), 'MNLI', 'century', data_dir='/glue')
    table, _ = make_report(tmp_path / 'some', config, records + simulated()[0])
    assert 'Not evaluated: MNLI (no result yet, or its files are not in /glue).' in table and CAPTION in table


def test_one_fine_tuning_and_one_seed_are_said_in_words(tmp_path):
    records = [about(), *(fine_tuned(arm, 0, 0, 'accuracy', 70.0) for arm in ARMS)]
    records += [fine_tuned(arm, 0, 0, 'degenerate', 0.0) for arm in ARMS]
    table, _ = make_report(tmp_path, make_config(ARMS, range(1)), make_records(list(ARMS), range(1)) + records)
    assert cells(table, CAPTION)[1] == ['15% (baseline)', '1', '70.00 (one seed)', '–', '–', '0 of 1']


def test_workdirs_whose_task_data_differ_are_not_pooled(tmp_path):
    for name, seeds, data in (('a', range(2), 'abc'), ('b', range(2, 4), 'abd')):
        records = make_records(list(ARMS), seeds) + [about(data=data)]
        write_workdir(tmp_path / name, make_config(ARMS, seeds), records)
    with pytest.raises(UserError, match='have other data for task century: report them apart'):
        write_report([tmp_path / 'a', tmp_path / 'b'], tmp_path / 'out')


def texts(*labels) -> list[TextExample]:
    return [TextExample(str(number), f'text {number}', None, label) for number, label in enumerate(labels)]


GOLD = [
    Task('sst2', 'classification', ('no', 'yes'), ('accuracy', 'f1', 'macro_f1', 'matthews'),
         {'train': texts('no', 'no', 'yes'), 'dev': texts('yes', 'no', 'yes', 'no')}),
    Task('stsb', 'regression', (), ('pearson', 'spearman'),
         {'train': texts(1.0, 2.0), 'dev': texts(0.5, 4.0, 2.5)}),
    Task('ner', 'tagging', ('O', 'B-PER', 'I-PER'), ('entity_f1', 'token_accuracy'),
         {'train': [], 'dev': [TaggedSentence('0', ('a', 'b', 'c'), ('B-PER', 'I-PER', 'O'))]}),
    Task('squad', 'span', (), ('f1', 'exact_match'),
         {'train': [], 'dev': [Question('0', 'who', 'Ann went.', (Answer('Ann', 0),)),
                               Question('1', 'when', 'It was noon.', (Answer('noon', 7),))]}),
]  # fmt: skip


@pytest.mark.parametrize('task', GOLD, ids=lambda task: task.name)
def test_a_model_that_copies_the_gold_labels_scores_100_in_the_report(tmp_path, task):
    examples = task.examples('dev')
    gold = {
        'tagging': lambda example: list(example.tags),
        'span': lambda example: example.answers[0].text,
    }.get(task.kind, lambda example: example.label)
    predictions = [gold(example) for example in examples]
    found = scores(task, predictions, examples)
    trivial = majority(task, task.examples('train'), examples)
    degenerate = is_degenerate(task, predictions, found, trivial)
    results = [
        Result(task.name, arm, seed, ft_seed, 'point', 1, None, None, None, {'dev': found}, {'dev': degenerate})
        for arm in ARMS
        for seed in range(2)
        for ft_seed in range(2)
    ]
    records = [about(task.name, primary=task.primary), *task_figures(results, task.name, 1, 600)]
    table, _ = make_report(tmp_path, make_config(ARMS, range(2)), make_records(list(ARMS), range(2)) + records)
    for row in cells(table, f'{task.name}: mean ± half of CI95 over pretraining seeds')[1:]:
        assert row[2 : 2 + len(task.metrics)] == ['100.00 (all seeds equal)'] * len(task.metrics)
        assert row[-1] == '0 of 4'
