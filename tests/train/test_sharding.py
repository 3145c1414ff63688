"""Rules from logical axes to mesh axes, the mesh that a config asks for, and which rows a process loads."""

import dataclasses
import itertools
import math
from collections import Counter

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import AbstractMesh, AxisType, Mesh
from jax.sharding import PartitionSpec as P

from model import mlm
from model.config import ModelConfig
from model.layout import laid_out, named, per_device, used
from model.parameters import AXES as PARAMETER_AXES
from model.parameters import axis_sizes
from tests.train import parameter_specs
from train.config import OptimizerConfig
from train.mesh import AXES, local_rows, make_mesh, side_by_side
from train.sharding import RULES, MeshLayout, optimizer_shardings, parameter_axes, parameter_shardings, spec

MESH = AbstractMesh((2, 2, 2, 2), AXES, axis_types=(AxisType.Auto,) * 4)


def test_every_parameter_of_base_and_large_lies_where_the_file_says():
    assert parameter_specs.FILE.read_text() == parameter_specs.text(), (
        'read what changed, then: python -m tests.train.parameter_specs'
    )


@pytest.mark.parametrize('size', ['base', 'large', 'albert_base'])
@pytest.mark.parametrize('fields', parameter_specs.FORMS.values(), ids=parameter_specs.FORMS)
def test_nothing_large_is_whole_on_every_device(size, fields):
    for path, leaf in jax.tree_util.tree_flatten_with_path(parameter_specs.state(size, **fields))[0]:
        assert leaf.sharding.spec[0] == 'arm'
        if leaf.size * 4 > 2**20:
            assert 'fsdp' in leaf.sharding.spec, path


@pytest.mark.parametrize('optimizer', ['adamw', 'lamb'])
@pytest.mark.parametrize('changes', [{}, {'bias_correction': False}, {'clip_norm': 1.0}], ids=str)
def test_moments_lie_as_their_parameters(optimizer, changes):
    state = parameter_specs.state('base', OptimizerConfig(name=optimizer, **changes))
    wanted = Counter(str(leaf.sharding.spec) for leaf in jax.tree.leaves(state.params))
    found = Counter(str(leaf.sharding.spec) for leaf in jax.tree.leaves(state.opt_state))
    assert found == wanted + wanted + Counter([str(P('arm'))])


def test_rules_name_the_axes_of_parameters_and_no_unknown_mesh_axis():
    assert set(PARAMETER_AXES) <= RULES.keys()
    assert {axis for axes in RULES.values() for axis in axes} == set(AXES)


def test_a_name_without_a_rule_is_an_error():
    with pytest.raises(ValueError, match="no rule for an axis named 'embd'"):
        spec(('layers', 'embd'), MESH)
    with laid_out(MeshLayout(MESH)), pytest.raises(ValueError, match="no rule for an axis named 'rows'"):
        jax.eval_shape(lambda x: named(x, 'rows', 'width'), jax.ShapeDtypeStruct((4, 4), np.float32))


def test_two_axes_over_one_mesh_axis_are_an_error():
    with pytest.raises(ValueError, match='divide twice'):
        spec(('heads', 'feed_forward'), MESH)


def test_mesh_axes_of_one_device_are_left_out():
    mesh = AbstractMesh((1, 4, 1, 2), AXES, axis_types=(AxisType.Auto,) * 4)
    assert spec(('replica', 'batch', 'embed', 'heads', None), mesh) == P(None, ('data',), None, ('tensor',), None)


def test_a_leaf_without_axes_is_an_error():
    config = ModelConfig(vocab_size=100)
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape), leaf.dtype), _shapes(config))
    declared = mlm.declared(config)
    parameter_shardings(shapes, declared, MESH)
    shapes['head']['bias'] = jax.ShapeDtypeStruct((2, 128, 3), np.float32)
    with pytest.raises(ValueError, match=r"'head'.*'bias'.*do not name its axes"):
        parameter_shardings(shapes, declared, MESH)
    shapes['another'] = {'kernel': jax.ShapeDtypeStruct((2, 3), np.float32)}
    with pytest.raises(ValueError, match='another'):
        parameter_shardings(shapes, declared, MESH)
    params, (moments, *rest), *_ = parameter_specs.state('base')
    odd = (moments._replace(count=jax.ShapeDtypeStruct((2, 5), np.int32)), *rest)
    with pytest.raises(ValueError, match='it has no axes'):
        optimizer_shardings(odd, params, parameter_specs.ADAMW, MESH)


def _shapes(config):
    return {name: shapes for name, shapes in mlm.shapes(config).items() if name != 'pooler'}


def test_names_mean_nothing_without_a_layout():
    x = np.ones((2, 3), np.float32)
    assert named(x, 'no', 'matter') is x and used(x, 'no', 'matter') is x
    assert per_device(abs, (), ()) is abs


def test_a_layout_needs_a_name_for_each_axis():
    with laid_out(MeshLayout(MESH)), pytest.raises(ValueError, match='do not name the axes'):
        jax.eval_shape(lambda x: named(x, 'batch'), jax.ShapeDtypeStruct((4, 4), np.float32))


def test_only_vectors_as_wide_as_the_model_are_left_whole():
    axes = parameter_axes(mlm.declared(ModelConfig(vocab_size=100)))
    assert axes['head']['norm']['scale'] == (None,) and axes['layers']['attention_norm']['bias'] == ('layers', None)
    assert axes['layers']['feed_forward']['up']['bias'] == ('layers', 'feed_forward')
    assert axes['layers']['feed_forward']['up']['kernel'] == ('layers', 'embed', 'feed_forward')


@dataclasses.dataclass(frozen=True)
class Device:
    """A device of any process."""

    id: int
    process_index: int
    platform = device_kind = 'cpu'
    client = None


def shape_of(shape, devices=8, replicas=1, rows=(), sizes=None, per_process=1000) -> tuple[int, ...]:
    """Of the mesh for these devices."""
    found = make_mesh(shape, replicas, rows, sizes, [Device(i, i // per_process) for i in range(devices)])
    assert found.axis_names == ('arm', 'data', 'fsdp', 'tensor')
    return found.devices.shape


@pytest.mark.parametrize(
    ('shape', 'more', 'found'),
    [
        ((-1, -1, 1, 1), dict(replicas=9, rows=(16, 8)), (1, 8, 1, 1)),
        ((-1, -1, 1, 1), dict(replicas=6, rows=(16, 8)), (2, 4, 1, 1)),
        ((-1, -1, 1, 1), dict(replicas=6, rows=(16, 6)), (2, 2, 1, 1)),
        ((-1, -1, 1, 1), dict(replicas=3, rows=(3,)), (1, 1, 1, 1)),
        ((-1, -1, 2, 2), dict(replicas=6, rows=(16,)), (2, 1, 2, 2)),
        ((1, -1, 2, 1), dict(rows=(4,)), (1, 2, 2, 1)),
        ((1, 2, -1, 1), dict(rows=(16,), sizes={'embed': 6}), (1, 2, 2, 1)),
        ((1, 2, 1, -1), dict(rows=(16,), sizes={'heads': 12, 'vocab': 128, 'embed': 5}), (1, 2, 1, 4)),
        ((2, 2, 1, 1), dict(replicas=2, rows=(2,)), (2, 2, 1, 1)),
    ],
)
def test_the_mesh_that_a_config_asks_for(shape, more, found):
    assert shape_of(shape, **more) == found


@pytest.mark.parametrize(
    ('shape', 'more', 'said'),
    [
        ((4, 4, 1, 1), dict(replicas=4), r'run.mesh \(4, 4, 1, 1\) needs 16 devices; there are 8'),
        ((2, -1, 1, 1), dict(replicas=3), r'replicas \(3\) does not divide over arm 2'),
        ((1, 4, 2, 1), dict(rows=(4,)), r'batches of \(4,\) rows do not divide over data x fsdp = 8'),
        ((1, 1, 4, 1), dict(sizes={'embed': 6}), r'embed \(6\) does not divide over fsdp 4'),
        ((1, 1, 1, 8), dict(sizes={'heads': 12}), r'heads \(12\) does not divide over tensor 8'),
        ((1, 2, 1, 1), dict(per_process=2), r'uses 2 of 8 devices and leaves processes \[1, 2, 3\] without work'),
    ],
)
def test_a_mesh_that_cannot_be(shape, more, said):
    with pytest.raises(ValueError, match=said) as error:
        shape_of(shape, **more)
    assert '\n' not in str(error.value)


def test_sizes_of_axes_are_the_models():
    config = ModelConfig(layers=3, width=48, heads=4, feed_forward=96, vocab_size=100, max_length=20)
    expected = dict(
        vocab=128, embed=48, head_embed=48, heads=4, head=12, feed_forward=96, layers=3, position=20, type=2
    )
    assert axis_sizes(mlm.declared(config)) == expected


def test_groups_of_devices_for_replicas_to_be_planned():
    assert [side_by_side(s, 8) for s in ((-1, -1, 1, 1), (-1, 2, 2, 1), (4, -1, 1, 1), (-1, 8, 2, 1))] == [8, 2, 4, 1]


@settings(deadline=None)
@given(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 2)), st.integers(0, 4), st.integers(1, 5), st.data()
)
def test_processes_load_the_rows_of_their_devices(powers, per_process, each, data):
    """All rows where the shares of two processes overlap in part; in whatever order the devices stand in the mesh."""
    shape = (*(2**power for power in powers), 1)
    count = math.prod(shape)
    devices = [Device(i, i >> per_process) for i in range(count)]
    grid = np.array(data.draw(st.just(devices) | st.permutations(devices))).reshape(shape)
    batch_size = shape[1] * shape[2] * each
    shares: dict[int, set[int]] = {}
    for (_, along_data, along_fsdp, _), device in np.ndenumerate(grid):
        first = (along_data * shape[2] + along_fsdp) * each
        shares.setdefault(device.process_index, set()).update(range(first, first + each))
    pairs = itertools.combinations(shares.values(), 2)
    apart = all(a == b or not a & b and len(a) == len(b) for a, b in pairs)
    mesh = Mesh(grid, AXES, axis_types=(AxisType.Auto,) * 4)
    for process, share in shares.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jax, 'process_index', lambda process=process: process)
            assert list(local_rows(mesh, batch_size)) == (sorted(share) if apart else list(range(batch_size)))


def test_processes_side_by_side_read_different_rows():
    mesh = make_mesh((1, 8, 1, 1), 1, devices=[Device(i, i // 2) for i in range(8)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, 'process_index', lambda: 2)
        assert list(local_rows(mesh, 16)) == [8, 9, 10, 11]
