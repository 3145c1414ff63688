"""Saves for which there is no room."""

import errno
import os
from types import SimpleNamespace

import pytest

from data.errors import UserError
from tests.train.checkpoint_case import (
    make_state,
    python,
    restore,
    save_steps,
)
from train.checkpoints import Checkpoints


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
