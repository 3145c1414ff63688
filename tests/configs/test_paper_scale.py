"""The paper scale against the published recipes, number by number."""

import dataclasses

import pytest

from configs import bert_base, bert_large, masking_rate, masking_schedule, prediction_rate, scales, static_masking
from train.config import Stage
from train.schedule import learning_rate

BERT = {
    'name': 'adamw',
    'learning_rate': 1e-4,
    'schedule': 'linear',
    'warmup_share': 10_000 / 1_000_000,
    'decay_share': 0.1,
    'beta1': 0.9,
    'beta2': 0.999,
    'epsilon': 1e-6,
    'bias_correction': False,
    'weight_decay': 0.01,
    'clip_norm': 1.0,
    'micro_batches': 1,
}
"""Devlin et al. 2019, Appendix A.2; google-research/bert optimization.py."""
WETTIG = BERT | {
    'learning_rate': 2e-3,
    'warmup_share': 1380 / 23_000,
    'beta2': 0.98,
    'bias_correction': True,
    'clip_norm': 0.0,
}
"""DinkyTrain run_efficient_mlm_recipe.sh."""
ANKNER = WETTIG | {'learning_rate': 5e-4, 'warmup_share': 0.06, 'weight_decay': 1e-5}

BASE = {'layers': 12, 'width': 768, 'heads': 12, 'feed_forward': 3072}
LARGE = {'layers': 24, 'width': 1024, 'heads': 16, 'feed_forward': 4096}
REST = {
    'positions': 'learned',
    'max_length': 512,
    'dropout': 0.1,
    'attention': 'splash',
    'attention_dropout': 0.0,
    'dtype': 'bfloat16',
}

BERT_STAGES = (Stage(128, 256, 900_000), Stage(512, 256, 100_000))
WETTIG_STAGES = (Stage(128, 4096, 23_000), Stage(512, 4096, 2_300, True, 5e-4 / 2e-3, 0.1))

RECIPES = {
    'the scale': (scales.scale('paper'), BERT, BASE | {'norm': 'post'}, BERT_STAGES),
    'bert_base': (bert_base.config('paper').base, BERT, BASE | {'norm': 'post'}, BERT_STAGES),
    'bert_large': (bert_large.config('paper').base, BERT, LARGE | {'norm': 'post'}, BERT_STAGES),
    'masking_rate': (masking_rate.config('paper').base, WETTIG, LARGE | {'norm': 'pre'}, WETTIG_STAGES),
    'prediction_rate': (prediction_rate.config('paper').base, WETTIG, LARGE | {'norm': 'pre'}, WETTIG_STAGES[:1]),
    'masking_schedule': (
        masking_schedule.config('paper').base,
        ANKNER,
        BASE | {'norm': 'post'},
        (Stage(128, 4096, 70_000),),
    ),
    'static_masking': (
        static_masking.config('paper').base,
        BERT,
        BASE | {'norm': 'post'},
        (Stage(512, 256, 1_000_000),),
    ),
}


@pytest.mark.parametrize('name', RECIPES)
def test_recipe_is_the_published_one(name):
    config, optimizer, size, stages = RECIPES[name]
    assert dataclasses.asdict(config.optimizer) == pytest.approx(optimizer)
    assert {field: getattr(config.model, field) for field in size | REST} == size | REST
    assert config.stages == stages


def test_masking_as_published():
    for name, (config, *_) in RECIPES.items():
        masking = config.masking
        rule = (1.0, 0.0, 0.0) if name in ('masking_rate', 'prediction_rate') else (0.8, 0.1, 0.1)
        assert (masking.corruption_rate, masking.rule, masking.duplicates) == (0.15, rule, 0)


def test_learning_rates_reach_their_published_peaks():
    config = masking_rate.config('paper').base
    assert learning_rate(config, 1_379) == pytest.approx(2e-3)  # update 1,380
    assert max(learning_rate(config, step) for step in range(0, 23_000, 20)) <= 2e-3
    assert learning_rate(config, 22_999) < 1e-6
    assert learning_rate(config, 23_000) == pytest.approx(5e-4 / 230)
    assert learning_rate(config, 23_229) == pytest.approx(5e-4)
    assert learning_rate(config, 25_299) < 1e-6
    bert = bert_base.config('paper').base
    assert learning_rate(bert, 9_999) == pytest.approx(1e-4)
    # One schedule over both stages: nine tenths in, it has a tenth of the peak left, give or take the warmup.
    assert learning_rate(bert, 900_000) == pytest.approx(1e-5, rel=0.02)


def test_text_of_the_paper_scale():
    data = scales.scale('paper').data
    assert (data.corpus, data.tokenizer, data.vocab_size) == ('tfds:wikipedia/20230601.en', 'unigram', 32_000)
    # 40 epochs of 1,000,000 steps of 256 rows are 6,400,000 rows of 510 tokens of text.
    assert static_masking.config('paper').base.data.max_train_tokens == 6_400_000 * 510


def test_every_device_of_a_pod_has_work():
    assert scales.scale('paper').run.mesh == (-1, -1, 1, 1)
