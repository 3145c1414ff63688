"""Which replicas share a program, and what fills its spare slots."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.train.step_case import config
from train.cohort import CONTROL, Cohort, Replica, cohorts, structure
from train.config import Stage


def replicas(arms=('a', 'b', 'c'), seeds=3) -> list[Replica]:
    return [Replica(arm, seed, config(0.1 * (i + 1))) for seed in range(seeds) for i, arm in enumerate(arms)]


def test_traced_numbers_share_a_program_and_structure_does_not():
    plain = config()
    masking = dataclasses.replace(
        plain.masking, corruption_rate=0.4, rule=(1.0, 0.0, 0.0), rate_points=((1.0, 0.2),), noise=3, duplicates=2
    )
    optimizer = dataclasses.replace(plain.optimizer, learning_rate=1.0, weight_decay=0.3, schedule='trapezoidal')
    same = dataclasses.replace(plain, masking=masking, optimizer=optimizer)
    assert structure(plain) == structure(same)
    others = [
        dataclasses.replace(plain, model=dataclasses.replace(plain.model, layers=1)),
        dataclasses.replace(plain, stages=(Stage(24, 8, 31),)),
        dataclasses.replace(plain, optimizer=dataclasses.replace(plain.optimizer, name='lamb')),
        dataclasses.replace(plain, masking=dataclasses.replace(plain.masking, prediction_rate=0.45)),
    ]
    assert len({structure(plain), *map(structure, others)}) == len(others) + 1
    groups = cohorts([Replica('a', 0, plain), Replica('b', 0, others[0]), Replica('c', 0, same)], 'a')
    assert [[r.arm for r in group.replicas] for group in groups] == [['a', 'c'], ['b']]
    assert [group.name for group in groups] == ['0', '1']
    with pytest.raises(ValueError, match='mixes 2 structures'):
        Cohort('x', (Replica('a', 0, plain), Replica('b', 0, others[0])))


def test_nine_replicas_on_two_slots_get_one_control():
    (group,) = cohorts(replicas(), 'b', slots=2)
    *rest, control = group.replicas
    twin = rest[1]
    assert (twin.arm, control.arm, control.seed) == ('b', f'b{CONTROL}', twin.seed)
    assert control.config.masking.noise != twin.config.masking.noise
    assert dataclasses.replace(control.config, masking=twin.config.masking) == twin.config


@pytest.mark.parametrize('slots', [2, 8, 256])
def test_one_replica_has_all_devices_for_itself(slots):
    (group,) = cohorts(replicas(('a',), 1), 'a', slots)
    assert [replica.arm for replica in group.replicas] == ['a']


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 64))
def test_controls_fill_whole_slots_and_are_all_different(arms, seeds, slots):
    asked = replicas(('a', 'b', 'c', 'd')[:arms], seeds)
    (group,) = cohorts(asked, 'a', slots)
    assert list(group.replicas[: len(asked)]) == asked
    assert len({(r.arm, r.seed) for r in group.replicas}) == len(group.replicas)
    size = len(group.replicas)
    side_by_side = max(n for n in range(1, slots + 1) if slots % n == 0 and size % n == 0)
    # Never slower than without controls.
    plain = max(n for n in range(1, slots + 1) if slots % n == 0 and len(asked) % n == 0)
    assert size / side_by_side <= len(asked) / plain
