"""What --grid crosses, and what it refuses."""

import pytest

from data.errors import UserError
from experiments.config_file import load
from experiments.tuning import Grid
from train.config import Config, MaskingConfig

CONFIGS = {'15%': Config(), '40%': Config(masking=MaskingConfig(corruption_rate=0.4))}


def test_every_arm_at_every_value():
    crossed = Grid.parse('optimizer.learning-rate=1e-3,0.01').crossed(CONFIGS)
    assert {name: config.optimizer.learning_rate for name, config in crossed.items()} == {
        f'{arm} @ optimizer.learning_rate={value:g}': value for arm in CONFIGS for value in (0.001, 0.01)
    }


@pytest.mark.parametrize(
    'field',
    ['data.vocab_size', 'data.max_train_tokens', 'run.log_every', 'evaluation.rows', 'model.vocab_size',
     'masking.noise', 'optimizer.micro_batches'],
)  # fmt: skip
def test_a_field_that_no_run_could_be_better_by_is_refused(field):
    with pytest.raises(UserError, match=f'--grid {field}: it cannot be chosen by result'):
        Grid.parse(f'{field}=1024,2048').crossed(CONFIGS)


def test_the_length_that_arms_are_evaluated_at_is_not_crossed():
    last = len(CONFIGS['15%'].stages) - 1
    with pytest.raises(UserError, match='the length at which all arms are evaluated'):
        Grid.parse(f'stages.{last}.length=16,32').crossed(CONFIGS)


def test_a_field_without_its_section_is_told_where_it_may_be():
    with pytest.raises(UserError, match="no field 'learning_rate' in the config: perhaps optimizer.learning_rate"):
        Grid.parse('learning_rate=1e-3,0.01').crossed(CONFIGS)


def test_a_field_that_could_undo_equal_flops_is_refused():
    electra = load('configs/electra.py', 'smoke')
    Grid.parse('optimizer.learning_rate=1e-3,0.01').check(electra)
    Grid.parse('masking.corruption_rate=0.2,0.3').check(load('configs/masking_rate.py', 'smoke'))
    with pytest.raises(UserError, match='--grid objective.generator.width: arms have equal FLOPs'):
        Grid.parse('objective.generator.width=0.25,1.0').check(electra)


@pytest.mark.parametrize('values', ['0.001', '1e-3,0.001', '0.00123456,0.001234561,0.1', ''])
def test_values_of_one_name_are_refused(values):
    with pytest.raises(UserError, match='--grid optimizer.learning_rate'):
        Grid.parse(f'optimizer.learning_rate={values}')
