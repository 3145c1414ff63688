"""Arms of different objectives, whole: trained, saved, evaluated, reported, taken out."""

import json

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

from experiments.load import load_replica
from experiments.reporting.records import read_csv
from model.huggingface import read_bert
from tests.integration.commands import STEPS, SWITCH, one_line
from train.metrics import read

CONFIG = """
from experiments.config_paths import changed


def config(scale):
    arms = (Arm('BERT', {'objective.name': 'mlm'}), Arm('ELECTRA'))
    base = changed(BASE, {
        'objective.name': 'electra', 'objective.generator.share': 'disentangled', 'objective.generator.width': 0.5,
        'evaluation.curve_probe': 20, 'evaluation.likelihood_paragraphs': 0, 'stages': BASE.stages[1:],
    })
    return Ablation('objectives', 'Nothing shows.', base, arms, 'BERT', seeds=2, primary='probe')
"""


@pytest.fixture(scope='session')
def ran(place):
    """The workdir of both arms with two seeds, and what the command printed."""
    place.write('objectives.py', CONFIG)
    return place.folder / 'objectives', place.ablate('objectives.py', 'objectives').stdout


def test_each_arm_has_the_figures_that_its_objective_gives(ran):
    workdir, output = ran
    programs = json.loads((workdir / 'config.json').read_text())['cohorts']
    assert [{arm for arm, _ in program['replicas']} for program in programs] == [{'BERT'}, {'ELECTRA'}]
    measured = {}
    for row in read_csv(workdir / 'results.csv'):
        measured.setdefault(row.metric, set()).add(row.arm)
    for metric in ('probe', 'curve_probe', 'flops', 'tokens', 'targets'):
        assert measured[metric] == {'BERT', 'ELECTRA'}, metric
    for metric in ('loss', 'accuracy', 'own_loss', 'curve_loss'):
        assert measured[metric] == {'BERT'}, metric
    assert 'Arm ELECTRA has no MLM head' in (workdir / 'table.md').read_text()
    assert (workdir / 'compute.png').exists() and 'failed' not in output


def test_training_is_told_in_the_terms_of_the_objective(ran):
    lines = [record for record in read(ran[0]) if record['kind'] == 'train' and record['arm'] == 'ELECTRA']
    assert {line['seed'] for line in lines} == {0, 1}
    for line in lines:
        assert {'generator_loss', 'generator_accuracy', 'detection_loss', 'precision', 'recall', 'auc'} <= line.keys()
        assert 5 < line['fake_share'] < 20 and 0 <= line['auc'] <= 100
        assert line['loss'] == pytest.approx(line['generator_loss'] + 50 * line['detection_loss'], rel=0.1)
    _, told = (ran[0] / 'table.md').read_text().split('**Training rows, %**')
    (row,) = [line for line in told.split('\n\n')[1].splitlines() if 'ELECTRA' in line]
    *others, precision, recall, auc = (cell.strip() for cell in row.strip('|').split('|'))
    assert all((*others, recall, auc)) and '| BERT' not in told.split('\n\n')[1]
    # There is a precision where any token was called replaced, which so early need not be.
    assert bool(precision) == any(line['precision'] is not None for line in lines if line['step'] > 0.9 * STEPS)


def test_it_goes_on_where_it_stopped_and_more_seeds_train_only_what_is_new(place, ran):
    again = place.ablate('objectives.py', 'objectives').stdout
    assert 'compiled' not in again
    steps = sorted(int(path.name) for path in (ran[0] / 'checkpoints' / '1').iterdir() if path.name.isdecimal())
    assert steps == [STEPS - SWITCH]


def test_an_arm_without_an_mlm_head_fills_no_masks(place, ran):
    said = place.run('fill_mask', '--workdir', 'objectives', '--arm', 'ELECTRA', 'The [MASK] of the', code=2)
    assert one_line(said.stderr) == 'this arm was trained by objective electra and has no MLM head: name another --arm'
    assert '[MASK] 1' in place.run('fill_mask', '--workdir', 'objectives', 'The [MASK] of the').stdout


def test_it_is_taken_out_with_its_detector_and_without_a_head(place, ran):
    place.run('convert', 'objectives', '--arm', 'ELECTRA', '--out', 'hf:out')
    assert json.loads((place.folder / 'out/config.json').read_text())['architectures'] == ['ElectraForPreTraining']
    config, params, _, trained, *_ = load_replica(ran[0], 'ELECTRA', 0)
    tensors = load_file(place.folder / 'out/model.safetensors')
    for ours, theirs in {'dense': 'dense', 'output': 'dense_prediction'}.items():
        kernel = tensors[f'discriminator_predictions.{theirs}.weight'].T
        np.testing.assert_array_equal(kernel, trained['detection'][ours]['kernel'])
    # The sum of the generator's table and the difference to it that was learnt.
    words, token = tensors['electra.embeddings.word_embeddings.weight'], trained['embeddings']['token']
    np.testing.assert_array_equal(words, np.asarray(token['embedding'] + token['delta'])[: len(words)])
    assert np.abs(token['delta']).max() > 0
    again, read = read_bert(place.folder / 'out')
    assert again.layers == config.model.layers and 'head' not in read
    jax.tree.map(np.testing.assert_array_equal, read['layers'], params['layers'])


def test_a_text_without_labels_has_no_probe_to_compare_by(place):
    """Known before anything is trained on it."""
    place.write('objectives.py', CONFIG)
    place.write('bare.txt', '\n\n'.join(' '.join(f'{n * i} of {i % 7 + n}' for i in range(400)) for n in range(12)))
    words = ('--data.corpus', 'files:bare.txt', '--data.vocab-size', '310', '--workdir', 'bare')
    ran = place.run('ablate', 'objectives.py', *words, code=2)
    assert '--data.corpus files:bare.txt: arms are compared by the probe' in ran.stderr and 'compiled' not in ran.stdout


@pytest.mark.parametrize(
    ('words', 'said'),
    [
        (['--objective.generator.share', 'weights'], 'as large as the model'),
        (['--objective.generator.width', '0.8125'], 'objective.generator.width 0.8125 of this model: model.width 13'),
        (['--objective.sampler', 'uniform', '--objective.generator.layers', '0.5'], 'uniform has no generator'),
        (['--objective.name', 'electra'], "primary 'loss' needs an MLM head"),
        (['--objective.name', 'sop2'], 'sop2'),
    ],
)
def test_mistakes_are_one_line(refused, words, said):
    if '--objective.name' not in words:
        words = [*words, '--objective.name', 'replace_mlm']
    assert said in refused('ablate', 'tiny.py', *words)
