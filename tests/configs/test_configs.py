"""Every config at every scale: it builds, its arms differ in what the claim is about and in nothing else."""

import ast
import dataclasses
import re
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest
from tokenizers import BertWordPieceTokenizer

from configs import scales
from experiments.config_paths import changed, differences
from experiments.equal_flops import flops
from train.chips import CHIPS
from train.config import Config
from train.rates import copies, rate_at, target_slots

FOLDER = Path(__file__).parents[2] / 'configs'
VARIES = {
    'masking_rate': {'masking.corruption_rate'},
    'bert_base': set(),
    'bert_large': set(),
    'corruption_rule': {'masking.rule'},
    'corruption_rule_40': {'masking.corruption_rate', 'masking.rule'},
    'prediction_rate': {'masking.corruption_rate', 'masking.prediction_rate'},
    'masking_strategy': {'masking.corruption_rate', 'masking.unit'},
    'masking_schedule': {'masking.corruption_rate', 'masking.rate_points'},
    'curriculum': {'stages', 'stages.0.steps'},
    'static_masking': {'masking.duplicates'},
    'control': {'masking.noise'},
    'electra': {'objective.name', 'objective.detect', 'masking.rule', 'stages.0.steps'},
    'electra_generator': {'objective.generator.width'},
    'electra_masking': {
        'objective.name',
        'masking.rule',
        'masking.corruption_rate',
        'stages.0.steps',
    },
    'embedding_sharing': {'objective.generator.share'},
    'input_format': {'objective.name', 'objective.rows', 'stages.0.batch_size'},
    'sentence_order': {'objective.name'},
    'sharing': {'model.embedding_width', 'model.layers_share'},
    'span_boundary': {'objective.name', 'objective.rows'},
}
"""What the arms of each config may differ in."""
EVERY = [(name, scale) for name in VARIES for scale in scales.SCALES]


def ablation(name, scale):
    return import_module(f'configs.{name}').config(scale)


def tokens(config):
    return sum(stage.steps * stage.batch_size * stage.length for stage in config.stages)


def test_no_config_is_left_out():
    assert {path.stem for path in FOLDER.glob('*.py')} == {*VARIES, '__init__', 'scales', 'published'}


@pytest.mark.parametrize(('name', 'scale'), EVERY)
def test_builds(name, scale):
    built = ablation(name, scale)
    assert built.name == name
    for arm in built.arms:
        config = built.config(arm.name)
        longest = max(stage.length for stage in config.stages)
        assert config.model.max_length >= longest
        assert copies(config.masking) >= 1
        assert target_slots([config.masking], config.stages[-1].length) <= longest
        assert config.stages[-1].length == built.config(built.baseline).stages[-1].length  # evaluated at one length
    assert {figure.arm for figure in built.published} <= {arm.name for arm in built.arms}
    if len(built.arms) > 1:
        assert built.seeds >= 2


@pytest.mark.parametrize(('name', 'scale'), EVERY)
def test_arms_differ_where_the_claim_says(name, scale):
    built = ablation(name, scale)
    configs = [built.config(arm.name) for arm in built.arms]
    found = set().union(*(differences(a, b) for a in configs for b in configs))
    several = [path for path in VARIES[name] if path.startswith('stages')]  # which there are depends on the scale
    assert VARIES[name] - set(several) <= found <= VARIES[name] and bool(several) == any(
        'stages' in path for path in found
    )
    assert len(set(configs)) == len(configs)


@pytest.mark.parametrize('name', VARIES)
def test_scales_are_shared(name):
    """Below paper scale a config takes size and budget from the scale, so that ablations can stand side by side."""
    for scale in ('smoke', 'cpu', 'overnight'):
        base, built = scales.scale(scale), ablation(name, scale).base
        found = {
            path
            for path in differences(base, built)
            if not path.startswith(('masking.', 'objective.', 'evaluation.tasks', 'evaluation.curve_probe'))
        }
        assert found <= {
            'prediction_rate': {'stages.0.steps', 'stages.1.steps'} if scale != 'overnight' else set(),
            'bert_base': BERT_FORM,
            'bert_large': BERT_FORM | {'model.layers'},
            'static_masking': {'stages', 'data.max_train_tokens'},
            **dict.fromkeys(('electra', 'electra_generator', 'electra_masking', 'embedding_sharing'), {'stages'}),
            'input_format': {'stages'},
            'sentence_order': {'stages'},
            'sharing': {'stages', 'model.layers'},  # smoke has one layer
            'span_boundary': {'stages'},
        }.get(name, set())


BERT_FORM = {
    'model.norm',
    'model.positions',
    'optimizer.beta2',
    'optimizer.bias_correction',
    'optimizer.clip_norm',
}


@pytest.mark.parametrize('name', VARIES)
def test_header(name):
    text = ast.get_docstring(ast.parse((FOLDER / f'{name}.py').read_text()))
    for part in ('Claim: ', 'Source: ', 'Command: ', 'Cost: '):
        assert f'\n{part}' in text
    command = re.search(r'Command: python -m experiments\.(\w+) (\S+) --scale cpu --workdir (\S+)\n', text)
    built = ablation(name, 'paper')
    assert command.groups() == ('ablate' if len(built.arms) > 1 else 'pretrain', f'configs/{name}.py', f'runs/{name}')
    arms, billions, hours = re.search(
        r'Cost: (\d+) arms?\b[^;]*; at paper scale ([\d.]+) billion tokens a replica\b.*'
        r" and at v5e's peak ([\d,]+) chip-hours",
        ' '.join(text.split()),
    ).groups()
    assert int(arms) == len(built.arms)
    assert billions == f'{tokens(built.config(built.baseline)) / 1e9:.1f}'
    assert hours == f'{built.seeds * sum(hours_at_the_peak(built.config(arm.name)) for arm in built.arms):,.0f}'


@pytest.mark.parametrize('name', VARIES)
def test_header_has_the_plan_of_the_baseline(name):
    """As docs/plan.md has it, where it was compiled; no plan is under the peak; those bound by HBM are above."""
    built = ablation(name, 'paper')
    text = (FOLDER.parent / 'docs/plan.md').read_text()
    ((baseline, *_, hours),) = (
        [cell.strip() for cell in line.strip('|').split('|')][1:]
        for line in text.splitlines()
        if line.startswith(f'| {name} |')
    )
    assert baseline == built.baseline
    header = ' '.join(ast.get_docstring(ast.parse((FOLDER / f'{name}.py').read_text())).split())
    assert f'by the plan (docs/plan.md) a replica of the baseline takes at least {float(hours):,.0f}' in header
    counted = hours_at_the_peak(built.config(built.baseline))
    assert counted - 0.05 <= float(hours) < 1.7 * counted


def hours_at_the_peak(config: Config) -> float:
    return flops(config) / CHIPS['v5e'].flops / 3600


def test_smaller_scales_are_smaller():
    sizes = [tokens(scales.scale(scale)) for scale in ('smoke', 'cpu', 'overnight', 'paper')]
    assert sizes == sorted(set(sizes))


def test_every_scale_keeps_the_curriculum():
    for scale in scales.SCALES:
        short, long = scales.scale(scale).stages
        assert short.length < long.length
        assert not short.restart and not long.restart
        assert short.steps > long.steps


def test_configs_of_many_programs_take_half_of_cpu():
    """And fine-tune once; only at that scale, whose ten minutes they would else not keep."""
    others = {'sharing': 'sentence_order', 'electra_masking': 'electra'}
    for (name, other), scale in product(others.items(), ('smoke', 'cpu', 'overnight')):
        light, whole = ablation(name, scale).base, ablation(other, scale).base
        assert light.steps == whole.steps // (1 + (scale == 'cpu'))
        for task, like in zip(light.evaluation.tasks, whole.evaluation.tasks, strict=True):
            assert task.recipe == dataclasses.replace(like.recipe, seeds=1 if scale == 'cpu' else like.recipe.seeds)
    assert ablation('sharing', 'cpu').base.evaluation.tasks


def test_smoke_reads_the_store_of_cpu():
    assert scales.scale('smoke').data == scales.scale('cpu').data


def test_unknown_scale():
    with pytest.raises(ValueError, match="scale 'big': use smoke, cpu, overnight, paper"):
        scales.scale('big')


def test_masking_rate():
    built = ablation('masking_rate', 'cpu')
    assert [built.config(arm.name).masking.corruption_rate for arm in built.arms] == [0.15, 0.30, 0.40]
    assert built.baseline == '15%'
    for scale in scales.SCALES:
        base = ablation('masking_rate', scale).base
        assert base.masking.rule == (1.0, 0.0, 0.0)
        assert base.model.norm == 'pre'


def test_corruption_rule():
    """Every chosen share as the tables have it: per cent of the tokens that turn into [MASK], random, stay."""
    table_8 = [(12, 1.5, 1.5), (15, 0, 0), (12, 3, 0), (12, 0, 3), (0, 12, 3), (0, 15, 0)]
    table_4 = [(40, 0, 0), (40, 0, 5), (35, 5, 0), (32, 4, 4)]
    assert chosen('corruption_rule') == table_8
    assert chosen('corruption_rule_40') == table_4


def chosen(name: str) -> list[tuple[float, ...]]:
    built = ablation(name, 'cpu')
    shares = []
    for arm in built.arms:
        masking = built.config(arm.name).masking
        shares.append(tuple(round(100 * masking.corruption_rate * share, 6) for share in masking.rule))
    return shares


def test_corruption_rule_counts_on_the_probe_where_there_are_labels():
    for name, scale in product(('corruption_rule', 'corruption_rule_40'), scales.SCALES):
        built = ablation(name, scale)
        assert (built.primary == 'probe') == (built.base.data.corpus == 'sotu')


@pytest.mark.parametrize('scale', scales.SCALES)
def test_prediction_rate(scale):
    built = ablation('prediction_rate', scale)
    masking = [built.config(arm.name).masking for arm in built.arms]
    assert [(m.corruption_rate, m.prediction_rate or m.corruption_rate) for m in masking] == [
        (0.40, 0.40),
        (0.40, 0.20),
        (0.20, 0.20),
        (0.20, 0.40),
        (0.10, 0.40),
        (0.05, 0.40),
    ]
    assert [copies(m) for m in masking] == [1, 1, 1, 2, 4, 8]
    assert sum(map(copies, masking)) == 17  # as the header says


def test_masking_schedule():
    built = ablation('masking_schedule', 'cpu')
    courses = [
        [round(rate_at(built.config(arm.name).masking, step, 100), 6) for step in (0, 50, 100)] for arm in built.arms
    ]
    assert courses == [[0.15] * 3, [0.30] * 3, [0.30, 0.225, 0.15], [0.15, 0.225, 0.30]]


@pytest.mark.parametrize('scale', scales.SCALES)
def test_static_masking_uses_each_mask_four_times(scale):
    built = ablation('static_masking', scale)
    config = built.config('static')
    (stage,) = config.stages
    rows = config.data.max_train_tokens // (stage.length - 2)
    epochs = stage.steps * stage.batch_size / rows
    assert 4 * config.masking.duplicates <= epochs < 4.5 * config.masking.duplicates
    assert rows >= stage.batch_size
    assert config.masking.duplicates == 10 and built.config('dynamic').masking.duplicates == 0


def test_control_is_all_chance():
    for scale in scales.SCALES:
        built = ablation('control', scale)
        assert len(built.arms) >= 8 and built.all_pairs
        quiet = {changed(built.config(arm.name), {'masking.noise': 0}) for arm in built.arms}
        assert quiet == {built.base}
        assert built.base == scales.scale(scale)


OF_EQUAL_FLOPS = [
    *((name, scale, {}) for name in ('electra', 'electra_masking') for scale in scales.SCALES),
    ('electra', 'cpu', {'data.vocab_size': 8192}),
    ('electra', 'cpu', {'model.layers': 6, 'objective.generator.width': 0.5}),
    ('electra', 'cpu', {'masking.corruption_rate': 0.4}),
    ('electra_masking', 'cpu', {'stages.0.steps': 3500}),
]


@pytest.mark.parametrize(('name', 'scale', 'overrides'), OF_EQUAL_FLOPS)
def test_arms_of_equal_flops(name, scale, overrides):
    """Within half a step, whatever the command line changes."""
    built = dataclasses.replace(ablation(name, scale), overrides=overrides)
    like = flops(built.config('ELECTRA' if name == 'electra' else 'ELECTRA, 15%'))
    for arm in built.arms:
        config = built.config(arm.name)
        (stage,) = config.stages
        longer = changed(config, {'stages': (dataclasses.replace(stage, steps=stage.steps + 1),)})
        assert abs(flops(config) - like) <= 0.51 * (flops(longer) - flops(config))


def test_flops_are_those_of_the_tokenizer_that_is_named(tmp_path):
    tokenizer = BertWordPieceTokenizer({'[PAD]': 0, '[UNK]': 1, '[CLS]': 2, '[SEP]': 3, '[MASK]': 4, 'a': 5})
    tokenizer.add_tokens([f'word{number}' for number in range(5000)])
    tokenizer.save(str(tmp_path / 'tokenizer.json'))
    named = {'data.tokenizer': f'hf:{tmp_path}/tokenizer.json'}
    built = dataclasses.replace(ablation('electra', 'cpu'), overrides=named)
    sized = dataclasses.replace(built, overrides={**named, 'model.vocab_size': 5006})
    steps = [[built.config(arm.name).steps, sized.config(arm.name).steps] for arm in built.arms]
    assert all(a == b for a, b in steps)
    assert steps[-1][0] != ablation('electra', 'cpu').config('BERT').steps


def test_electra_arms_are_those_of_table_5():
    built = ablation('electra', 'paper')
    objectives = {arm.name: built.config(arm.name).objective for arm in built.arms}
    assert {name: (each.name, each.scores_all, each.predicts) for name, each in objectives.items()} == {
        'ELECTRA': ('electra', True, False),
        'ELECTRA 15%': ('electra', False, False),
        'Replace MLM': ('replace_mlm', False, True),
        'All-Tokens MLM': ('all_tokens_mlm', True, True),
        'BERT': ('mlm', False, True),
    }
