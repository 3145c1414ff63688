"""Which devices a collective joins, in every form that XLA writes it in."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.planning.groups import axes_of, groups

PAIRS = ((0, 2), (1, 3), (4, 6), (5, 7))
"""Of 8 devices in a mesh of 2 x 2 x 2, those that differ along the second axis."""


@pytest.mark.parametrize(
    'text',
    [
        'channel_id=1, replica_groups={{0,2},{1,3},{4,6},{5,7}}, use_global_device_ids=true',
        'replica_groups=[4,2]<=[2,2,2]T(0,2,1), use_global_device_ids=true',
        "replica_groups=mesh['a'=2,'b'=2,'c'=2] {'b'}, use_global_device_ids=true",
        "replica_groups=mesh['axis_0'=1,'axis_1'=2,'axis_2'=4], device_ids=([2,2,2]T(1,0,2)) {'axis_1'}, a={0}",
        "replica_groups=mesh['a'=8] {'a':(2)2}, use_global_device_ids=true",
    ],
    ids=['listed', 'iota', 'mesh', 'mesh of an iota', 'part of an axis'],
)
def test_every_form_says_the_same(text):
    assert sorted(groups(text, 8)) == list(PAIRS)


def test_a_permutation_joins_each_pair():
    assert groups('source_target_pairs={{0,1},{1,2},{2,0}}, metadata={}', 3) == ((0, 1), (1, 2), (2, 0))


def test_no_groups_are_all_devices():
    assert groups('replica_groups={}, to_apply=%add', 4) == ((0, 1, 2, 3),)


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match='no replica groups'):
        groups('replica_groups=something_else', 8)


@given(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4), st.data())
@settings(deadline=None, max_examples=60)
def test_groups_of_a_mesh_differ_along_the_axes_that_it_names(sizes, data):
    along = data.draw(st.sets(st.integers(0, len(sizes) - 1), min_size=1))
    mesh = ','.join(f"'a{i}'={size}" for i, size in enumerate(sizes))
    names = ','.join(f"'a{i}'" for i in sorted(along))
    found = groups(f'replica_groups=mesh[{mesh}] {{{names}}}', int(np.prod(sizes)))
    expected = {}
    for number, place in enumerate(itertools.product(*map(range, sizes))):
        expected.setdefault(tuple(p for i, p in enumerate(place) if i not in along), []).append(number)
    assert sorted(found) == sorted(map(tuple, expected.values()))


def test_axes_are_those_of_the_mesh():
    mesh = SimpleNamespace(devices=np.empty((2, 2, 2)), axis_names=('arm', 'data', 'fsdp'))
    assert axes_of(PAIRS, mesh) == ('data',)
    assert axes_of(((0, 1, 2, 3), (4, 5, 6, 7)), mesh) == ('data', 'fsdp')
    assert axes_of(((0,), (1,)), mesh) == ()
