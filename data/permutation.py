"""A random order of the rows, computed where it is needed and never stored."""

import numpy as np

_ROUND_KEYS = [np.uint64(0x9E3779B97F4A7C15 * number % 2**64) for number in range(1, 17, 2)]


def permute(seed: int, length: int, epoch, positions, n: int) -> np.ndarray:
    """The row at each position of an epoch: for each (seed, length, epoch) a bijection on [0, n).

    A balanced Feistel network (Luby and Rackoff 1988) on the smallest square of a power of two that holds n; what falls
    outside [0, n) goes through again until it does not (cycle walking, Black and Rogaway 2002).

    Args:
      epoch: int, or int array that broadcasts with positions.
      positions: int array, each in [0, n).

    Returns:
      int64, shaped as positions and epoch broadcast.

    Raises:
      ValueError: a position lies outside [0, n), where walking might never end.
    """
    positions, epoch = np.broadcast_arrays(np.asarray(positions, np.int64), np.asarray(epoch, np.int64))
    if positions.size and not 0 <= positions.min() <= positions.max() < n:
        raise ValueError(f'positions {positions.min()} to {positions.max()} are not in [0, {n})')
    half = np.uint64(max(1, (max(n - 1, 1).bit_length() + 1) // 2))
    key = mix(mix(np.array([seed % 2**64], np.uint64) ^ _ROUND_KEYS[0]) ^ np.uint64(length))
    first = int(epoch.min()) if epoch.size else 0
    key_of_epoch = mix(key ^ np.arange(first, int(epoch.max()) + 1 if epoch.size else 0, dtype=np.uint64))
    keys = key_of_epoch[(epoch - first).ravel()]
    rows = _feistel(positions.ravel().astype(np.uint64), keys, half)
    outside = np.flatnonzero(rows >= n)
    while outside.size:
        again = _feistel(rows[outside], keys[outside], half)
        rows[outside] = again
        outside = outside[again >= n]
    return rows.astype(np.int64).reshape(positions.shape)


def draws(seeds, length: int, epochs, rows, count: int) -> np.ndarray:
    """`count` numbers of 64 random bits for each (seed, length, epoch, row), which broadcast: uint64 [..., count].

    They have nothing to do with the row's place in its epoch.
    """
    seeds, epochs, rows = np.broadcast_arrays(*(np.asarray(each, np.int64) for each in (seeds, epochs, rows)))
    key = mix(seeds.astype(np.uint64) ^ _ROUND_KEYS[1]) ^ np.uint64(length)
    for part in (epochs, rows):
        key = mix(mix(key) ^ part.astype(np.uint64))
    return mix(key[..., None] ^ mix(np.arange(1, count + 1, dtype=np.uint64) ^ _ROUND_KEYS[2]))


def _feistel(values: np.ndarray, keys: np.ndarray, half: np.uint64) -> np.ndarray:
    mask = (np.uint64(1) << half) - np.uint64(1)
    left, right = values >> half, values & mask
    for round_key in _ROUND_KEYS:
        left, right = right, left ^ (mix(right ^ keys ^ round_key) & mask)
    return (left << half) | right


def mix(values: np.ndarray) -> np.ndarray:
    """The finalizer of splitmix64 (Steele et al. 2014), on uint64 arrays, modulo 2**64."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
