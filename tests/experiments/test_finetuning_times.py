"""How long a fine-tuning took is told only where one start did all of it."""

import pytest

from experiments.finetuning.run import Keeper


@pytest.mark.parametrize('begun', [False, True])
def test_a_program_that_another_start_had_begun_has_no_time(tmp_path, begun):
    (tmp_path / 'metrics.jsonl').touch()
    (tmp_path / 'checkpoints').mkdir()
    if begun:
        (tmp_path / 'checkpoints' / '0' / '12').mkdir(parents=True)
    keeper = Keeper(tmp_path, None)
    first, second = keeper._end('0')['seconds'], keeper._end('1')['seconds']
    assert (first is None) == begun
    assert 0 <= second < 60
