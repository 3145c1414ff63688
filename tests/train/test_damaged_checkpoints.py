"""Steps that a kill, a disk or a hand has left incomplete."""

import json
import os
import random
import re
import shutil
import signal
import time

import numpy as np
import pytest

from tests.train.checkpoint_case import (
    abstract,
    assert_same,
    files_of,
    make_state,
    python,
    restore,
    save_steps,
)
from train.checkpoints import Checkpoints


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


def test_what_a_checkpoint_did_not_cause_is_not_taken_for_an_incomplete_one(tmp_path, monkeypatch):
    save_steps(tmp_path, 1, 2)

    def out_of_memory(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr('orbax.checkpoint.StandardCheckpointer.restore', out_of_memory)
    with pytest.raises(MemoryError):
        restore(tmp_path)


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
