import errno
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from data.errors import UserError
from train.checkpoints import Checkpoints

ROOT = Path(__file__).parents[2]
REPLICAS = 3
OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2))


def make_state(seed: int = 0, width: int = 16):
    key = jax.random.key(seed)
    params = {
        'layers': {'kernel': jax.random.normal(key, (REPLICAS, 2, width, width))},
        'bias': jax.random.normal(jax.random.fold_in(key, 1), (REPLICAS, width)),
    }
    return {
        'params': params,
        'optimizer': jax.vmap(OPTIMIZER.init)(params),
        'step': jnp.full((REPLICAS,), seed, jnp.int32),
        'alive': jnp.ones((REPLICAS,), bool),
    }


def abstract(state):
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding), state)


def assert_same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def save_steps(folder, *steps, keep=10):
    with Checkpoints(folder, keep) as checkpoints:
        for step in steps:
            checkpoints.save(step, make_state(step), {'step': step})


def restore(folder, like=None):
    lines = []
    found = Checkpoints(folder, 10, lines.append).restore(abstract(make_state() if like is None else like))
    return found, lines


def files_of(folder):
    return {path.relative_to(folder): path.stat().st_mtime_ns for path in folder.rglob('*')}


def python(code: str, *args, devices: int = 1) -> subprocess.Popen:
    env = dict(os.environ, JAX_PLATFORMS='cpu', XLA_FLAGS=f'--xla_force_host_platform_device_count={devices}')
    command = [sys.executable, '-c', textwrap.dedent(code), *map(str, args)]
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


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


def _empty(step):
    step.mkdir()


def _without(item):
    def damage(step):
        shutil.copytree(step.parent / '5', step)
        shutil.rmtree(step / item)

    return damage


def _arrays(step):
    """The file that holds the arrays."""
    shutil.copytree(step.parent / '5', step)
    return max((path for path in step.rglob('*') if path.is_file()), key=lambda path: path.stat().st_size)


def _truncated(step):
    path = _arrays(step)
    os.truncate(path, path.stat().st_size // 2)


def _lost(step):
    _arrays(step).unlink()


def _file(name, content):
    def damage(step):
        shutil.copytree(step.parent / '5', step)
        (step / name).write_bytes(content)

    return damage


def _without_file(name):
    def damage(step):
        shutil.copytree(step.parent / '5', step)
        (step / name).unlink()

    return damage


def _folder_for(name):
    def damage(step):
        _without_file(name)(step)
        (step / name).mkdir()

    return damage


INCOMPLETE = {
    'empty folder': (_empty, 'meta is missing'),
    'no meta': (_without('meta'), 'meta is missing'),
    'no state': (_without('state'), 'state is missing'),
    'truncated arrays': (_truncated, r'state/ocdbt.process_0/d/\w+ has sha256 \w{64}, not \w{64}\.'),
    'lost arrays': (_lost, r'state/ocdbt.process_0/d/\w+ is missing\.'),
    'truncated meta': (_file('meta/metadata', b'{"st'), r'meta/metadata has sha256 \w{64}, not'),
    'empty manifest': (_file('state/manifest.ocdbt', b''), r'state/manifest.ocdbt has sha256 \w{64}, not'),
    'a folder in place of a file': (_folder_for('state/_METADATA'), r'state/_METADATA cannot be read \('),
    'no hashes': (_without_file('hashes.json'), r'hashes.json is missing\.'),
    'truncated hashes': (_file('hashes.json', b'{'), r'hashes.json cannot be read \('),
    'hashes of nothing': (_file('hashes.json', b'{}'), r'hashes.json names no file of meta\.'),
}


@pytest.mark.parametrize('kind', INCOMPLETE)
def test_an_incomplete_newest_step_is_passed_over_and_blocks_no_later_save(tmp_path, kind):
    damage, reason = INCOMPLETE[kind]
    save_steps(tmp_path, 4, 5)
    damage(tmp_path / '7')
    before = files_of(tmp_path)
    lines = []
    with Checkpoints(tmp_path, 2, lines.append) as checkpoints:
        step, state, meta = checkpoints.restore(abstract(make_state()))
        assert (step, meta) == (5, {'step': 5})
        assert_same(state, make_state(5))
        said = f'Checkpoint {tmp_path / "7"} is damaged or incomplete and passed over: '
        assert lines[0].startswith(said) and re.match(reason, lines[0].removeprefix(said))
        assert lines[1:] == ['Going on from the checkpoint of step 5.']
        assert '\n' not in lines[0]
        assert files_of(tmp_path) == before  # another process may be reading, or writing
        checkpoints.save(6, make_state(6), {'step': 6})
    assert sorted(path.name for path in tmp_path.iterdir()) == ['5', '6', '7.incomplete']
    (step, state, _), lines = restore(tmp_path)
    assert (step, lines) == (6, [])
    assert_same(state, make_state(6))


@pytest.fixture(scope='module')
def sound(tmp_path_factory):
    """Two steps, to be copied."""
    folder = tmp_path_factory.mktemp('sound')
    save_steps(folder, 5, 7)
    return folder


def test_one_bit_that_flips_in_any_file_is_seen_and_the_file_named(sound, tmp_path):
    """Orbax and tensorstore alone take a flip in an array's file for its numbers, and in the meta for its words."""
    folder = shutil.copytree(sound, tmp_path / 'flipped')
    draw = random.Random(0)
    files = [path for item in ('state', 'meta') for path in sorted((folder / '7' / item).rglob('*')) if path.is_file()]
    assert len(files) >= 8
    like = abstract(make_state())
    for path in files:
        content = path.read_bytes()
        damaged = bytearray(content)
        damaged[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        lines = []
        step, state, meta = Checkpoints(folder, log=lines.append).restore(like)
        assert (step, meta) == (5, {'step': 5}) and (np.asarray(state['step']) == 5).all()
        assert f'{path.relative_to(folder / "7")} has sha256' in lines[0]
        path.write_bytes(content)
    assert Checkpoints(folder).restore(like)[0] == 7


def test_several_incomplete_steps_and_an_earlier_one_aside(tmp_path):
    save_steps(tmp_path, 5)
    for name in ('7', '8', '7.incomplete'):
        (tmp_path / name).mkdir()
    lines = []
    with Checkpoints(tmp_path, 5, lines.append) as checkpoints:
        assert checkpoints.restore(abstract(make_state()))[0] == 5
        checkpoints.save(7, make_state(7), {})
    assert len(lines) == 3
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {'5', '7', '7.incomplete', '7.incomplete-2', '8.incomplete'}


def test_no_complete_step_at_all(tmp_path):
    (tmp_path / '7').mkdir()
    lines = []
    with Checkpoints(tmp_path, 2, lines.append) as checkpoints:
        assert checkpoints.restore(abstract(make_state())) is None
        assert lines[-1] == f'No checkpoint in {tmp_path} is whole: starting anew.'
        checkpoints.save(1, make_state(1), {})
    assert restore(tmp_path)[0][0] == 1


def test_the_leavings_of_killed_saves_are_ignored_and_cleared(tmp_path):
    save_steps(tmp_path, 5)
    leavings = ('9.orbax-checkpoint-tmp', '9.orbax-checkpoint-tmp-123', '6.orbax-checkpoint-tmp')
    for name in leavings:
        shutil.copytree(tmp_path / '5', tmp_path / name)
        (tmp_path / name / 'commit_success.txt').unlink(missing_ok=True)
    (tmp_path / 'notes').mkdir()
    (found, lines) = restore(tmp_path)
    assert (found[0], lines) == (5, [])
    save_steps(tmp_path, 6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ['5', '6', 'notes']


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


def test_what_a_checkpoint_did_not_cause_is_not_taken_for_an_incomplete_one(tmp_path, monkeypatch):
    save_steps(tmp_path, 1, 2)

    def out_of_memory(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr('orbax.checkpoint.StandardCheckpointer.restore', out_of_memory)
    with pytest.raises(MemoryError):
        restore(tmp_path)


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


def test_a_failed_save_is_raised_and_blocks_no_later_one(tmp_path):
    process = python(
        """
        import os, resource, sys
        import jax, jax.numpy as jnp
        from data.errors import UserError
        from train.checkpoints import Checkpoints

        state = {'w': jax.random.normal(jax.random.key(0), (4, 64, 64))}
        with Checkpoints(sys.argv[1], 3) as checkpoints:
            checkpoints.save(1, state, {})
            checkpoints.wait()
            limit = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limit[1]))  # as if the disk were full
            try:
                checkpoints.save(2, state, {})
                checkpoints.wait()
                print('no error')
            except UserError as error:
                print(error)
            print(sorted(os.listdir(sys.argv[1])))
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            print(Checkpoints(sys.argv[1]).restore(jax.eval_shape(lambda: state))[0])
            checkpoints.save(2, state, {})
        print(Checkpoints(sys.argv[1]).restore(jax.eval_shape(lambda: state))[0])
        """,
        tmp_path,
    )
    out, err = process.communicate(timeout=120)
    said = (
        f'{tmp_path}: the checkpoint of step 2 could not be written (File too large); the checkpoint of step 1 is whole'
    )
    mend = 'make room, then give the same command again'
    assert (process.returncode, out) == (0, f"{said}: {mend}\n['1']\n1\n2\n"), err
    assert err == ''


def _no_space(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), 'somewhere')


@pytest.mark.parametrize(
    'place',
    [
        'orbax.checkpoint.CheckpointManager.save',  # before it returns
        'orbax.checkpoint._src.checkpointers.async_checkpointer._on_commit_callback',  # the renaming, in Orbax's thread
        'train.checkpoints.write_hashes',  # ours, in Orbax's thread
    ],
)
@pytest.mark.parametrize('noticed', ['at the next save', 'at the next step', 'at the end'])
def test_a_full_disk_is_one_line_wherever_it_shows(tmp_path, monkeypatch, place, noticed):
    save_steps(tmp_path, 1)
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(2, make_state(2), {})
        checkpoints.wait()
        with pytest.raises(UserError) as refusal, monkeypatch.context() as patch:
            patch.setattr(place, _no_space)
            checkpoints.save(3, make_state(3), {})
            if noticed == 'at the next save':
                checkpoints.save(4, make_state(4), {})
            while noticed == 'at the next step':
                checkpoints.check()
            checkpoints.close()
        assert str(refusal.value) == (
            f'{tmp_path}: the checkpoint of step 3 could not be written (No space left on device); the checkpoint of '
            'step 2 is whole: make room, then give the same command again'
        )
        assert sorted(path.name for path in tmp_path.iterdir()) == ['1', '2']
        checkpoints.save(3, make_state(3), {})
    assert restore(tmp_path)[0][0] == 3


def test_a_disk_with_too_little_room_is_known_before_anything_is_written(tmp_path, monkeypatch):
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, make_state(1), {})
        checkpoints.wait()
        monkeypatch.setattr('shutil.disk_usage', lambda folder: SimpleNamespace(free=1_000))
        said = r'step 2 could not be written \(it takes 0.0 MB, and 0.0 MB are free\); .* step 1 is whole: make room'
        with pytest.raises(UserError, match=said):
            checkpoints.save(2, make_state(2), {})
        monkeypatch.undo()
        assert [path.name for path in tmp_path.iterdir()] == ['1']
        checkpoints.save(2, make_state(2), {})
    assert restore(tmp_path)[0][0] == 2


def test_another_error_in_a_save_is_not_taken_for_a_full_disk(tmp_path, monkeypatch):
    def broken(*_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr('train.checkpoints.write_hashes', broken)
    with pytest.raises(OSError, match='Input/output error'), Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, make_state(), {})


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


SAVER = """
    import os, sys
    import jax, jax.numpy as jnp
    from train.checkpoints import Checkpoints

    folder, last = sys.argv[1], int(sys.argv[2])
    state = {name: jnp.zeros((4, 256, 256)) for name in 'abcdefgh'}
    like = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), state)
    checkpoints = Checkpoints(folder, 2)
    found = checkpoints.restore(like)
    step = 0
    if found:
        step, state, meta = found
        assert meta == {'step': step}, meta
        assert all((leaf == step).all() for leaf in state.values())
    print('from', step, flush=True)
    while step < last:
        state = jax.tree.map(lambda a: a + 1, state)
        step += 1
        checkpoints.save(step, state, {'step': step})
    checkpoints.close()
    os._exit(0)
"""


def test_a_process_that_exits_right_after_closing_leaves_a_complete_step_and_says_nothing(tmp_path):
    process = python(SAVER, tmp_path, 1)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (0, 'from 0\n', '')
    assert [path.name for path in tmp_path.iterdir()] == ['1']
    shutil.copytree(tmp_path / '1', tmp_path / '2')
    os.truncate(max((tmp_path / '2').rglob('*'), key=lambda path: path.stat().st_size * path.is_file()), 100)
    process = python(SAVER, tmp_path, 2)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, '')
    assert out.splitlines()[0].startswith(f'Checkpoint {tmp_path / "2"} is damaged or incomplete')
    assert out.splitlines()[1:] == ['Going on from the checkpoint of step 1.', 'from 1']


def test_killed_inside_a_save_the_newest_complete_step_wins(tmp_path):
    reached, inside = 0, 0
    for kill in range(1, 4):
        process = python(SAVER, tmp_path, 10_000)
        start = int(process.stdout.readline().split()[1])
        assert start >= reached
        while _newest(tmp_path) < start + 2 * kill or not list(tmp_path.glob('*-tmp*')):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        reached = _newest(tmp_path)
        inside += bool(list(tmp_path.glob('*-tmp*')))
    assert inside, 'no kill fell inside a save'
    process = python(SAVER, tmp_path, reached + 2)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (0, f'from {reached}\n', '')
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([str(reached + 1), str(reached + 2)])
    assert json.loads((tmp_path / str(reached + 2) / 'meta' / 'metadata').read_text()) == {'step': reached + 2}


def _newest(folder):
    return max((int(path.name) for path in folder.iterdir() if path.name.isdecimal()), default=0)
