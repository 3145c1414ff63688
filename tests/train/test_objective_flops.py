"""Operations by objective: against XLA's count of an unrolled update's gradient, and what each part adds."""

import dataclasses

import jax
import pytest

from model.config import SIZES, GeneratorConfig, ModelConfig
from tests.train.objectives import objective_case
from tests.train.step_case import VOCABULARY
from train.config import Config, MaskingConfig, Stage
from train.flops import encoders, run_flops, step_flops
from train.objectives.config import ObjectiveConfig
from train.objectives.table import objective_of
from train.rates import target_slots
from train.step import init_params

MODEL = ModelConfig(
    **SIZES['tiny'], vocab_size=60, max_length=64, scan_layers=False, dropout=0.0, attention_dropout=0.0
)
STAGES = (Stage(length=64, batch_size=8, steps=3), Stage(length=128, batch_size=2, steps=5))


def config(name: str, rate: float = 0.15, **fields) -> Config:
    generator = GeneratorConfig(width=0.5, layers=0.5)
    return Config(
        model=dataclasses.replace(MODEL, max_length=128),
        stages=STAGES,
        masking=MaskingConfig(corruption_rate=rate),
        objective=ObjectiveConfig(name=name, generator=generator, **fields),
    )


@pytest.mark.parametrize(
    ('name', 'fields'),
    [
        ('electra', {}),
        ('electra', {'detect': 'chosen'}),
        ('replace_mlm', {}),
        ('all_tokens_mlm', {}),
        ('mlm_nsp', {'rows': 'segment_pairs'}),
        ('mlm_sbo', {}),
        ('mlm_sbo', {'rate': 0.4}),
    ],
)
def test_count_agrees_with_xla(name, fields):
    run = config(name, **fields)
    params = jax.eval_shape(lambda: init_params(jax.random.key(0), run))
    inputs = jax.eval_shape(lambda: objective_case.inputs(run, length=64))

    def total(params, inputs):
        return sum(objective_of(run).loss(params, run, VOCABULARY, inputs, jax.random.key(0))[0].values())

    found = jax.jit(jax.grad(total)).lower(params, inputs).compile().cost_analysis()['flops']
    assert step_flops(run, 0) == pytest.approx(found, rel=0.1)


def test_a_run_is_the_sum_of_its_updates_and_a_generator_costs_what_its_encoder_does():
    mlm, electra = config('mlm'), config('electra')
    assert run_flops(mlm) == 3 * step_flops(mlm, 0) + 5 * step_flops(mlm, 1)
    slots = target_slots([electra.masking], 64)
    assert encoders(mlm, 64, slots) == [(mlm.model, slots)]
    (own, everywhere), (generator, chosen) = encoders(electra, 64, slots)
    assert (own, everywhere, chosen) == (electra.model, 64, slots) and generator.layers == 1
    alone = dataclasses.replace(mlm, model=generator)
    uniform = dataclasses.replace(electra, objective=ObjectiveConfig('electra', sampler='uniform'))
    assert step_flops(electra, 0) == pytest.approx(step_flops(uniform, 0) + step_flops(alone, 0))
    assert step_flops(uniform, 0, slots=8) == step_flops(uniform, 0, slots=16)  # every token is scored
