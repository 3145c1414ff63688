"""Saving and restoring: what comes back, what is kept, what is refused."""

import shutil

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from data.errors import UserError
from tests.train.checkpoint_case import (
    OPTIMIZER,
    REPLICAS,
    abstract,
    assert_same,
    make_state,
    python,
    restore,
    save_steps,
)
from train.checkpoints import Checkpoints


def test_a_step_comes_back_whole(tmp_path):
    state = make_state(5)
    meta = {'config': {'rate': 0.15, 'stages': [128, 512]}, 'replicas': [['mask15', 0]], 'tokenizer': 'ab'}
    with Checkpoints(tmp_path / 'a b #%20' / 'deep', 2) as checkpoints:
        assert checkpoints.restore(abstract(state)) is None
        checkpoints.save(7, state, meta)
        checkpoints.wait()
        step, restored, restored_meta = checkpoints.restore(abstract(state))
    assert (step, restored_meta) == (7, meta)
    assert_same(restored, state)


def test_the_meta_is_taken_when_saved(tmp_path):
    meta = {'replicas': [1]}
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, make_state(), meta)
        meta['replicas'].append(2)
        with pytest.raises(TypeError):
            checkpoints.save(2, make_state(), {'bad': object()})
    assert restore(tmp_path)[0][2] == {'replicas': [1]}


def test_the_newest_are_kept(tmp_path):
    save_steps(tmp_path, 1, 2, 3, 10, 20, keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ['10', '20']


def test_steps_that_a_number_divides_are_kept_for_good(tmp_path):
    with Checkpoints(tmp_path, 1, keep_every=10) as checkpoints:
        for step in (5, 10, 13, 20, 25, 27):
            checkpoints.save(step, make_state(step), {})
    assert Checkpoints(tmp_path).steps() == [10, 20, 27]
    with Checkpoints(tmp_path, 1, keep_every=10) as checkpoints:  # another process goes on
        checkpoints.save(30, make_state(30), {})
        checkpoints.save(31, make_state(31), {})
    assert Checkpoints(tmp_path).steps() == [10, 20, 30, 31]


def test_a_step_is_saved_once_and_never_behind_a_newer_one(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(3, make_state(3), {})
        checkpoints.save(3, make_state(4), {})
        with pytest.raises(RuntimeError, match='step 2 is not after the newest one, 3'):
            checkpoints.save(2, make_state(2), {})
    (step, state, _), _ = restore(tmp_path)
    assert step == 3
    assert_same(state, make_state(3))


def test_a_copied_folder_restores(tmp_path):
    save_steps(tmp_path / 'a', 1, 2)
    shutil.copytree(tmp_path / 'a', tmp_path / 'b')
    shutil.rmtree(tmp_path / 'a')
    (step, state, _), lines = restore(tmp_path / 'b')
    assert (step, lines) == (2, [])
    assert_same(state, make_state(2))
    save_steps(tmp_path / 'b', 3)
    assert restore(tmp_path / 'b')[0][0] == 3


def _other(change):
    state = make_state()
    change(state)
    return state


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (lambda s: s.update(step=s['step'].astype(jnp.float32)), 'holds step as int32, this run float32'),
        (
            lambda s: s['params'].update(bias=s['params']['bias'].astype(jnp.bfloat16)),
            'holds params.bias as float32, this run bfloat16',
        ),
        (
            lambda s: s['params']['layers'].update(kernel=jnp.ones((REPLICAS, 3, 16, 16))),
            r'holds params.layers.kernel with shape \(3, 2, 16, 16\), this run \(3, 3, 16, 16\)',
        ),
        (lambda s: s['params'].update(scale=s['params']['bias']), 'lacks params.scale'),
        (lambda s: s['params'].pop('bias'), 'holds params.bias, which this run has not'),
        (lambda s: s.update(optimizer=s['optimizer'][1:]), 'optimizer'),
    ],
)
def test_another_state_is_refused_by_the_leaf_that_differs(tmp_path, change, message):
    save_steps(tmp_path, 1, 2)
    with pytest.raises(UserError, match=message) as refusal:
        restore(tmp_path, _other(change))
    assert '\n' not in str(refusal.value) and str(tmp_path / '2') in str(refusal.value)


def test_one_step_can_be_asked_for_and_the_newest_meta_read_without_arrays(tmp_path):
    assert Checkpoints(tmp_path).newest_meta() is None and Checkpoints(tmp_path).steps() == []
    save_steps(tmp_path, 1, 2, 10)
    assert Checkpoints(tmp_path).steps() == [1, 2, 10]
    step, _, meta = Checkpoints(tmp_path).restore(abstract(make_state()), only=2)
    newest = Checkpoints(tmp_path).newest_meta()
    assert step == 2 and meta != newest == Checkpoints(tmp_path).restore(abstract(make_state()))[2]
    assert Checkpoints(tmp_path).restore(abstract(make_state()), only=3) is None
    shutil.rmtree(tmp_path / '10' / 'meta')
    assert Checkpoints(tmp_path).newest_meta() == meta


def test_a_save_followed_at_once_by_donating_steps_keeps_its_values(tmp_path):
    step = jax.jit(lambda state: jax.tree.map(lambda leaf: leaf + jnp.ones((), leaf.dtype), state), donate_argnums=0)
    state = {'w': jnp.zeros((REPLICAS, 512, 512)), 'n': jnp.zeros((REPLICAS,), jnp.int32)}
    like = abstract(state)
    donated = 0
    with Checkpoints(tmp_path, 10) as checkpoints:
        for number in range(1, 25):
            before, state = state, step(state)
            donated += before['w'].is_deleted()
            if number % 8 == 0:
                checkpoints.save(number, state, {})
    assert donated >= 12  # the others were still being saved from
    for number in (24, 16, 8):
        found, restored, _ = Checkpoints(tmp_path).restore(like)
        assert found == number
        assert (np.asarray(restored['w']) == number).all() and (np.asarray(restored['n']) == number).all()
        shutil.rmtree(tmp_path / str(number))


def test_the_optimizer_state_is_restored(tmp_path):
    """Three ways: uninterrupted equals resumed, and neither equals a cold optimizer on the restored weights."""

    @jax.jit
    def update(state, number):
        gradients = jax.tree.map(lambda p: jnp.sin(p * (1.0 + number)), state['params'])
        updates, optimizer = jax.vmap(OPTIMIZER.update)(gradients, state['optimizer'], state['params'])
        return {**state, 'params': optax.apply_updates(state['params'], updates), 'optimizer': optimizer}

    def run(state, start, stop):
        for number in range(start, stop):
            state = update(state, float(number))
        return state

    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(5, run(make_state(), 0, 5), {})
    (_, restored, _), _ = restore(tmp_path)
    cold = {**restored, 'optimizer': jax.vmap(OPTIMIZER.init)(restored['params'])}
    uninterrupted = run(make_state(), 0, 10)
    assert_same(run(restored, 5, 10), uninterrupted)
    assert np.abs(run(cold, 5, 10)['params']['bias'] - uninterrupted['params']['bias']).max() > 1e-4


def test_another_mesh_restores_the_same_bits(tmp_path):
    process = python(
        """
        import sys
        import jax, jax.numpy as jnp, numpy as np
        from jax.sharding import NamedSharding, PartitionSpec as P
        from train.checkpoints import Checkpoints

        def state_on(shape, names, spec):
            devices = np.array(jax.devices()[: np.prod(shape)]).reshape(shape)
            mesh = jax.sharding.Mesh(devices, names)
            values = {'w': jax.random.normal(jax.random.key(3), (8, 16, 32)), 'n': jnp.arange(8)}
            return {
                'w': jax.device_put(values['w'], NamedSharding(mesh, spec)),
                'n': jax.device_put(values['n'], NamedSharding(mesh, P(names[0]))),
            }

        saved = state_on((4, 2), ('arm', 'data'), P('arm', None, 'data'))
        with Checkpoints(sys.argv[1]) as checkpoints:
            checkpoints.save(1, saved, {})
        for shape, spec in (((8, 1), P('arm')), ((2, 4), P('arm', 'data')), ((1, 1), P())):
            wanted = state_on(shape, ('arm', 'data'), spec)
            like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), wanted)
            _, restored, _ = Checkpoints(sys.argv[1]).restore(like)
            for name in wanted:
                assert restored[name].sharding == wanted[name].sharding, (shape, name)
                np.testing.assert_array_equal(np.asarray(restored[name]), np.asarray(saved[name]))
            print(shape, len(restored['w'].sharding.device_set))
        like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), saved)
        print(Checkpoints(sys.argv[1]).restore(like)[1]['w'].sharding.device_set == {jax.devices()[0]})
        """,
        tmp_path,
        devices=8,
    )
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, '')
    assert out.splitlines() == ['(8, 1) 8', '(2, 4) 8', '(1, 1) 1', 'True']
