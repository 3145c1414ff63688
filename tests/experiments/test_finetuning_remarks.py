"""What a table of fine-tunings says of single seeds."""

import pytest

from experiments.finetuning.table import remarks
from train.finetuning.tune import Result

ABOUT = {'metrics': ['accuracy'], 'chosen_by': ''}


def result(degenerate: dict[str, bool]) -> Result:
    return Result(
        task='sst2', arm='a', seed=0, ft_seed=3, point='x', epoch=2, failed_at=None, selection=None, threshold=None,
        scores={split: {'accuracy': 40.0} for split in degenerate}, degenerate=degenerate,
    )  # fmt: skip


@pytest.mark.parametrize(
    ('degenerate', 'named'),
    [
        ({'dev': False, 'adversarial': True}, None),
        ({'dev': True, 'adversarial': True}, 'dev'),
        ({'dev': False, 'dev_mismatched': True}, 'dev_mismatched'),
    ],
)
def test_a_sound_model_is_not_said_to_have_learnt_nothing_for_its_adversarial_examples(degenerate, named):
    said = remarks(ABOUT, [result(degenerate)])
    assert said == (
        [] if named is None
        else [f'Seed 3 learnt nothing: one answer always, or no better than the commonest label, on {named}.']
    )  # fmt: skip
