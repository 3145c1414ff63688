"""Eight devices against one: the same masks, losses and gradients on every mesh, and no needless messages."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.train.sharding_case import LENGTH, MESHES, MICRO_BATCHES, MIXED, ONE, ROWS

NAMES = ['-'.join(map(str, mesh)) for mesh in MESHES]


@pytest.fixture(scope='module')
def ran(tmp_path_factory):
    """The folder that tests/train/sharding_case.py filled."""
    folder = tmp_path_factory.mktemp('sharding')
    flags = f'{os.environ.get("XLA_FLAGS", "")} --xla_force_host_platform_device_count=8'
    environment = {**os.environ, 'JAX_PLATFORMS': 'cpu', 'XLA_FLAGS': flags, 'PYTHONPATH': os.pathsep.join(sys.path)}
    command = [sys.executable, '-m', 'tests.train.sharding_case', str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert 'Involuntary full rematerialization' not in done.stderr, done.stderr
    return folder


@pytest.fixture(scope='module')
def sent(ran):
    return json.loads((ran / 'collectives.json').read_text())


def arrays(ran, kind: str, mesh=ONE, micro_batches: int | None = None) -> dict[str, np.ndarray]:
    name = '-'.join(map(str, mesh)) + ('' if micro_batches is None else f'-{micro_batches}')
    return dict(np.load(ran / f'{kind}-{name}.npz'))


@pytest.mark.parametrize('micro_batches', MICRO_BATCHES)
@pytest.mark.parametrize('mesh', MESHES, ids=NAMES)
def test_loss_and_every_gradient_are_those_of_one_device(ran, mesh, micro_batches):
    one, many = arrays(ran, 'step', micro_batches=1), arrays(ran, 'step', mesh, micro_batches)
    assert sum(name.startswith('gradient') for name in one) == 26
    alike(one, many, ('accuracy',))


def test_so_are_those_of_the_boundary_head(ran):
    one, many = arrays(ran, 'boundary'), arrays(ran, 'boundary', MIXED)
    assert sum(name.startswith('gradient') for name in one) == 26 + 10
    alike(one, many, ('mlm_accuracy', 'boundary_accuracy'))


def alike(one, many, counted: tuple[str, ...]) -> None:
    assert one.keys() == many.keys()
    assert one['metric.alive'].all() and one['metric.pairs.loss.0'][0] != one['metric.pairs.loss.0'][1]
    for name in ('targets', *(f'pairs.{metric}.{part}' for metric in counted for part in (0, 1)), 'alive'):
        np.testing.assert_array_equal(one[f'metric.{name}'], many[f'metric.{name}'])
    for name in ('pairs.loss.0', 'grad_norm'):
        np.testing.assert_allclose(one[f'metric.{name}'], many[f'metric.{name}'], rtol=1e-5)
    for name in one:
        if name.startswith('gradient'):
            for a, b in zip(one[name], many[name], strict=True):  # each replica
                # A key bias has no gradient but rounding: the 1e-9 is for it.
                assert np.max(np.abs(a - b)) <= 1e-5 * np.max(np.abs(a)) + 1e-9, name


@pytest.mark.parametrize('mesh', MESHES, ids=NAMES)
def test_masks_are_those_of_one_device(ran, mesh):
    one, many = arrays(ran, 'masks'), arrays(ran, 'masks', mesh)
    targets = one['weights_BxM'].sum(axis=-1)
    assert len(set(targets[0])) > 3, 'rows have uneven numbers of targets'
    for name in one:
        np.testing.assert_array_equal(one[name], many[name])


def test_evaluation_is_that_of_one_device(ran):
    one, many = arrays(ran, 'scores'), arrays(ran, 'scores', MIXED)
    assert one['weight'].sum() > 100
    np.testing.assert_array_equal(one['weight'], many['weight'])
    np.testing.assert_allclose(one['loss'], many['loss'], rtol=1e-5)


def test_initial_weights_are_those_of_one_device(ran):
    one, many = arrays(ran, 'init'), arrays(ran, 'init', MIXED)
    for name in one:
        np.testing.assert_array_equal(one[name], many[name])


def test_lamb_measures_whole_layers_that_lie_on_several_devices(ran):
    one, many = arrays(ran, 'lamb'), arrays(ran, 'lamb', MIXED)
    for name in one:
        if name.endswith(('kernel', 'embedding')):
            np.testing.assert_allclose(np.linalg.norm(one[name]), np.linalg.norm(many[name]), rtol=1e-4, err_msg=name)


def test_nothing_goes_between_groups_of_replicas(sent):
    assert sent['2-4-1-1-1'] and sent['2-1-2-2-lamb']
    assert not [each['source'] for program in sent.values() for each in program if 'arm' in each['axes']]


def kinds(program) -> set[tuple[str, str]]:
    return {(each['kind'], ' '.join(each['axes'])) for each in program}


@pytest.mark.parametrize('micro_batches', MICRO_BATCHES)
def test_data_parallelism_sums_gradients_and_sends_nothing_else(sent, micro_batches):
    assert sent['1-1-1-1-1'] == []
    assert kinds(sent[f'1-8-1-1-{micro_batches}']) == {('all-reduce', 'data')}
    assert kinds(sent[f'2-4-1-1-{micro_batches}']) == {('all-reduce', 'data')}


@pytest.mark.parametrize('micro_batches', MICRO_BATCHES)
def test_fsdp_gathers_parameters_and_sums_gradients(sent, micro_batches):
    program = sent[f'1-4-2-1-{micro_batches}']
    found = kinds(program)
    assert {('all-gather', 'fsdp'), ('all-reduce', 'data'), ('all-reduce', 'fsdp')} <= found
    assert found <= {('all-gather', 'fsdp'), *(('all-reduce', axes) for axes in ('data', 'fsdp', 'data fsdp'))}
    # Each of a layer's six kernels for the forward pass, and those that it takes again on the way back.
    back = ['transpose' in each['source'] for each in program if each['kind'] == 'all-gather']
    assert back.count(False) >= 6 and back.count(True) >= 4


@pytest.mark.parametrize('micro_batches', MICRO_BATCHES)
def test_tensor_parallelism_sums_what_heads_and_feed_forward_give(sent, micro_batches):
    program = sent[f'1-2-2-2-{micro_batches}']
    summed = [each['source'] for each in program if (each['kind'], each['axes']) == ('all-reduce', ['tensor'])]
    for part in ('attention/output', 'feed_forward/down', 'Embeddings'):
        assert [line for line in summed if part in line], part
    assert not any(kind == 'all-to-all' for kind, _ in kinds(program))


def test_no_activations_are_gathered(sent):
    activations = ROWS * LENGTH * 16
    for name, program in sent.items():
        largest_parameter = (2 * 16 + 200) * 16 if name.endswith('boundary') else 128 * 16
        assert activations > 3 * largest_parameter, 'or the bound would catch nothing'
        for each in program:
            assert each['kind'] == 'all-reduce' or each['elements'] <= largest_parameter, (name, each)
