"""Arrays in several files read as one, and what is said of a file that is damaged."""

import gc
import hashlib
import mmap

import numpy as np
import pytest

from data import shards
from data.errors import UserError
from data.shards import check, open_array, shard_name

PAGE = mmap.PAGESIZE


def written(folder, array, size):
    """The array in shards of `size` bytes."""
    content, made = array.tobytes(), []
    for number, start in enumerate(range(0, len(content), size)):
        part = content[start : start + size]
        (folder / shard_name('a', number)).write_bytes(part)
        made.append({'file': shard_name('a', number), 'bytes': len(part), 'sha256': hashlib.sha256(part).hexdigest()})
    return made


@pytest.mark.parametrize('dtype', ['uint16', 'uint32', 'int64'])
@pytest.mark.parametrize('bytes_more', [0, 8, PAGE])
def test_shards_lie_side_by_side(tmp_path, dtype, bytes_more):
    array = (
        np.random.default_rng(0).integers(0, 60_000, (3 * PAGE + bytes_more) // np.dtype(dtype).itemsize).astype(dtype)
    )
    made = written(tmp_path, array, PAGE)
    found = open_array(tmp_path, made, dtype)
    assert found.dtype == dtype and len(made) == 3 + bool(bytes_more)
    np.testing.assert_array_equal(found, array)
    border = PAGE // array.itemsize
    np.testing.assert_array_equal(found[border - 5 : border + 5], array[border - 5 : border + 5])
    with pytest.raises(ValueError, match='read-only'):
        found[0] = 1
    rows = found[: 7 * (len(found) // 7)].reshape(-1, 7)
    np.testing.assert_array_equal(np.take(rows, [0, len(rows) - 1], axis=0), np.stack([array[:7], rows[-1]]))


def test_the_files_stay_mapped_as_long_as_a_part_is_used_and_no_longer(tmp_path):
    def mapped():
        with open('/proc/self/maps') as file:
            return sum(str(tmp_path) in line for line in file)

    made = written(tmp_path, np.arange(PAGE, dtype=np.uint16), PAGE)
    part = open_array(tmp_path, made, 'uint16')[10:20]
    gc.collect()
    assert mapped() == 2 and part.tolist() == list(range(10, 20))
    del part
    gc.collect()
    assert mapped() == 0


def test_a_shard_of_another_size_is_refused(tmp_path):
    made = written(tmp_path, np.zeros(PAGE, np.uint16), PAGE)
    (tmp_path / made[0]['file']).write_bytes(b'short')
    with pytest.raises(ValueError, match='a-00000.bin has 5 bytes'):
        open_array(tmp_path, made, 'uint16')


def test_a_flipped_bit_is_named_by_file_and_hash(tmp_path):
    made = written(tmp_path, np.arange(PAGE, dtype=np.uint16), PAGE)
    check(tmp_path, made)
    content = bytearray((tmp_path / made[1]['file']).read_bytes())
    content[17] ^= 4
    (tmp_path / made[1]['file']).write_bytes(content)
    with pytest.raises(UserError, match=f'a-00001.bin is damaged: its sha256 is .*, not {made[1]["sha256"]}'):
        check(tmp_path, made)


def test_a_shard_is_at_most_a_gibibyte_and_whole_pages():
    assert shards.SHARD_BYTES <= 1 << 30 and shards.SHARD_BYTES % (1 << 16) == 0
