"""The bench's fine-tuning: both sides see every row of a pass once, and train all that they have."""

import dataclasses

import jax
import numpy as np
import pytest

from data.tasks.buckets import steps_per_epoch
from experiments.benching import finetune
from experiments.benching.torch_finetune import TorchPasses, padded
from tests.train import finetuning_case as case
from tests.train.step_case import VOCABULARY

MADE = case.features('classification', 40, longest=13)
ROWS = dataclasses.replace(MADE, targets=MADE.targets % 2)


def test_batches_of_the_other_side_are_as_long_as_their_longest_row():
    numbers = np.array([3, 0, 7])
    inputs = padded(ROWS, numbers)
    lengths_B = ROWS.lengths_N[numbers]
    assert inputs['input_ids'].shape == inputs['attention_mask'].shape == (3, lengths_B.max())
    assert inputs['labels'].tolist() == ROWS.targets[numbers].tolist()
    for row, (number, length) in enumerate(zip(numbers, lengths_B, strict=True)):
        tokens = ROWS.tokens_T[ROWS.offsets[number] :][:length]
        assert inputs['input_ids'][row].tolist() == [*tokens, *[VOCABULARY.pad] * (lengths_B.max() - length)]
        assert inputs['attention_mask'][row].sum() == length and inputs['attention_mask'][row, :length].all()


def test_each_of_our_passes_takes_every_step_and_changes_the_weights():
    passes = finetune.Passes(case.MODEL, ROWS)
    before = jax.device_get(passes._state.params)
    passes(2)
    assert passes._step == 3 * steps_per_epoch(ROWS, finetune.BATCH_SIZE) == int(passes._state.step[0])
    changed = jax.tree.map(lambda a, b: bool((np.asarray(a) != b).any()), passes._state.params, before)
    # Of the norms' scales some take steps below the last digit of 1.
    assert all(has for path, has in jax.tree_util.tree_leaves_with_path(changed) if path[-1].key != 'scale')


@pytest.mark.peers
def test_the_other_side_trains_a_model_with_as_many_parameters():
    model = dataclasses.replace(case.MODEL, vocab_size=128, dropout=0.0, attention_dropout=0.0)
    theirs = TorchPasses(model, finetune.CONFIG, ROWS, threads=1)
    ours = finetune.Passes(model, ROWS)
    count = sum(leaf.size for leaf in jax.tree.leaves(ours._state.params))
    assert sum(weight.numel() for weight in theirs._model.parameters()) == count
    before = [weight.detach().clone() for weight in theirs._model.parameters()]
    theirs(1)
    assert all((old != new).any() for old, new in zip(before, theirs._model.parameters(), strict=True))
