"""Reports of arms with other objectives: no MLM head, no loss, and a picture against FLOPs."""

import pytest

from experiments.reporting.compute import compute_figure, flops_after
from experiments.reporting.results import Results
from model.config import ModelConfig
from tests.experiments.report_case import figure, make_config, make_records, make_report
from train.config import Config, Stage
from train.flops import run_flops

ARMS = {'BERT': {}, 'ELECTRA': {'objective.name': 'electra'}}
OF_THE_HEAD = ('loss', 'accuracy', 'own_loss', 'own_accuracy', 'likelihood', 'curve_loss')


def records(arms, headless: tuple[str, ...], seeds=range(3)) -> list[dict]:
    made = [
        record
        for record in make_records(list(arms), seeds)
        if not (record.get('arm') in headless and (record.get('metric') in OF_THE_HEAD or record['kind'] == 'example'))
    ]
    for place, arm in enumerate(arms):
        for seed in seeds:
            for step in (200, 400, 600):
                value = 40 + 10 * place + seed + step / 100
                made.append(figure(arm, seed, 'curve_probe', value, task='century', step=step, stage=int(step > 500)))
    # Of the learning curve's paragraphs; the case has 47.5 for those of the table.
    made.append(figure('', None, 'curve_probe_majority', 41.0, task='century', step=None, stage=None))
    return made


@pytest.fixture(scope='module')
def mixed(tmp_path_factory):
    """One arm with an MLM head and one without."""
    folder = tmp_path_factory.mktemp('objectives')
    config = make_config(ARMS, primary='probe')
    return folder, *make_report(folder, config, records(ARMS, ('ELECTRA',)))


def rows(table: str, caption: str) -> list[list[str]]:
    """Cells of the table under a caption."""
    lines = table[table.index(f'**{caption}') :].split('\n\n')[1].splitlines()
    return [[cell.strip() for cell in line.strip('|').split('|')] for line in lines[2:]]


def test_an_arm_without_a_head_has_empty_cells_and_a_sentence_says_why(mixed):
    _, table, page = mixed
    losses = {row[0]: row[2:] for row in rows(table, 'Loss, nats a token')}
    assert losses['ELECTRA'] == [''] * 4 and all(losses['BERT (baseline)'])
    assert 'Arm ELECTRA has no MLM head' in table and 'Arm ELECTRA has no MLM head' in page
    assert [row[2:] for row in rows(table, 'Accuracy, %') if row[0] == 'ELECTRA'] == [[''] * 4]
    other = next(row for row in rows(table, 'Other measures') if row[0] == 'ELECTRA')
    assert '' in other and 'no result' not in ' '.join(other)
    assert 'without a result yet' not in table


def test_no_difference_is_taken_where_an_arm_has_no_figure_by_nature(mixed):
    _, table, _ = mixed
    assert 'probe accuracy' in table and '| loss at' not in table and '| pseudo-log-likelihood |' not in table


def test_quality_is_drawn_against_flops(mixed):
    folder, table, page = mixed
    assert (folder / 'compute.png').exists() and 'Quality against compute' in page
    results = Results([folder])
    assert 41.0 in [line.get_ydata()[0] for line in compute_figure(results).axes[0].lines if len(line.get_ydata()) == 2]
    config = results.config['configs']['ELECTRA']
    assert flops_after(results, 'ELECTRA', 0) == 0
    assert flops_after(results, 'ELECTRA', 600) == flops_after(results, 'ELECTRA', 10**6)
    assert flops_after(results, 'ELECTRA', 600) > flops_after(results, 'BERT', 600)
    stages = tuple(Stage(**stage) for stage in config['stages'])
    whole = run_flops(Config(stages=stages, model=ModelConfig(vocab_size=1024)))
    assert 0 < flops_after(results, 'BERT', 600) < 10 * whole


def test_detection_is_of_the_last_tenth_of_training(tmp_path):
    """By hand: windows of 50 and 10 steps count as so many; a seed's mean first, then the interval."""
    trained = [
        {'kind': 'train', 'arm': 'ELECTRA', 'seed': seed, 'step': step, 'steps': steps, 'generator_accuracy': accuracy}
        | ({'fake_share': 10.0 + seed} if seed else {})
        for seed, last in ((0, 32.0), (1, 62.0))
        for step, steps, accuracy in ((540, 50, 99.0), (590, 50, 20.0), (600, 10, last))
    ]
    made = records(ARMS, ('ELECTRA',), range(2))
    table, _ = make_report(tmp_path, make_config(ARMS, range(2), primary='probe'), made + trained)
    # Means 22 and 27: 24.5 ± 12.706 * sqrt(12.5) / sqrt(2).
    assert rows(table, 'Training rows, %') == [['ELECTRA', '2', '24.50 ± 31.77', '11.00 (one seed)', '', '', '', '']]


def test_precision_and_recall_are_of_all_tokens_together(tmp_path):
    """By hand, of 100 tokens an update: in 50 updates 10 are replaced, 2 called so and 1 of them rightly; in 10
    updates 20 are, 8 called so and 6 of them rightly."""
    calls = [
        (590, 50, dict(fake_share=10.0, detection_accuracy=90.0, precision=50.0, recall=10.0, auc=None)),
        (600, 10, dict(fake_share=20.0, detection_accuracy=84.0, precision=75.0, recall=30.0, auc=60.0)),
    ]
    trained = [
        {'kind': 'train', 'arm': 'ELECTRA', 'seed': seed, 'step': step, 'steps': steps, **figures}
        for seed in range(2)
        for step, steps, figures in calls
    ]
    silent = dict(fake_share=10.0, detection_accuracy=90.0, precision=None, recall=0.0, auc=None)
    trained += [{**trained[0], **silent, 'arm': 'BERT', 'seed': seed, 'step': 600} for seed in range(2)]
    made = records(ARMS, ('ELECTRA',), range(2))
    table, _ = make_report(tmp_path, make_config(ARMS, range(2), primary='probe'), made + trained)
    cells = {row[0]: row[2:] for row in rows(table, 'Training rows, %')}
    # 110 rightly of 180 called so and of 700 replaced, among 6,000.
    found = [f'{value:.2f} (all seeds equal)' for value in (70 / 6, 89.0, 11000 / 180, 11000 / 700, 60.0)]
    assert cells['ELECTRA'] == ['', *found]
    none = [f'{value} (all seeds equal)' for value in ('10.00', '90.00', '0.00')]
    assert cells['BERT (baseline)'] == ['', *none[:2], '', none[2], '']


def test_arms_that_all_have_no_head_are_told_so_once(tmp_path):
    arms = {'shared': {'objective.name': 'electra'}, 'separate': {'objective.name': 'electra'}}
    arms['separate']['masking.noise'] = 1
    table, page = make_report(tmp_path, make_config(arms, primary='probe'), records(arms, tuple(arms)))
    assert 'Arm shared and separate have no MLM head' in table
    assert 'Perplexity' not in table and 'nats a token (mean' not in table
    assert not (tmp_path / 'curves.png').exists()


def without_probe_curves(arms) -> list[dict]:
    return [record for record in records(arms, ()) if not record.get('metric', '').startswith('curve_probe')]


def test_without_probes_the_loss_is_drawn_against_flops_where_arms_differ_in_more_than_masks(tmp_path):
    arms = {'small': {}, 'large': {'model.width': 128}}
    make_report(tmp_path / 'steps', make_config(arms), without_probe_curves(arms))
    picture = compute_figure(Results([tmp_path / 'steps']))
    assert picture.axes[0].get_ylabel() == 'loss at 15%, nats a token'
    arms = {'15%': {}, '40%': {'masking.corruption_rate': 0.4}}
    make_report(tmp_path / 'rates', make_config(arms), without_probe_curves(arms))
    assert compute_figure(Results([tmp_path / 'rates'])) is None


def test_arms_that_hid_more_than_tokens_at_a_time_are_named(tmp_path):
    arms = {'tokens': {}, 'words': {'masking.unit': 'word'}, 'spans': {'masking.unit': 'span'}}
    table, _ = make_report(tmp_path / 'units', make_config(arms), records(arms, ()))
    assert 'Single tokens are masked here' in table and 'arm words and spans hid whole words or more' in table
    table, _ = make_report(tmp_path / 'rules', make_config(ARMS), records(ARMS, ('ELECTRA',)))
    assert 'Single tokens are masked here' not in table


def test_arms_that_never_read_mask_are_named_and_have_no_loss_of_their_own(tmp_path):
    arms = {'BERT': {}, 'Replace MLM': {'objective.name': 'replace_mlm'}}
    table, _ = make_report(tmp_path, make_config(arms), without_probe_curves(arms))
    assert 'Arm Replace MLM read samples of a generator in training' in table
    losses = {row[0]: row[2:] for row in rows(table, 'Loss, nats a token')}
    assert losses['Replace MLM'][-1] == '' and all(losses['Replace MLM'][:-1]) and all(losses['BERT (baseline)'])
