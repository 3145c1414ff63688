"""Which devices a collective joins: `replica_groups` in the four forms that XLA writes them in."""

import math
import re
from itertools import pairwise

import numpy as np
from jax.sharding import Mesh

Groups = tuple[tuple[int, ...], ...]


def groups(attributes: str, devices: int) -> Groups:
    """The groups of devices, by their numbers in the mesh's order.

    `{{0,1},{2,3}}`; `[2,4]<=[4,2]T(1,0)`: an iota of shape 4 x 2, transposed, in 2 rows of 4;
    `mesh['a'=2,'b'=4] {'b'}`: those that differ along the axes named; and that with `device_ids=([2,4]T(1,0))`, an iota
    that is transposed before the mesh is made of it. A permutation has `source_target_pairs`: each is a group here.

    Raises:
      ValueError: the text has none of these forms.
    """
    pairs = re.search(r'source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}', attributes)
    listed = re.search(r'replica_groups=\{((?:\{[\d,]*\},?)*)\}', attributes)
    if pairs or listed:
        found = re.findall(r'\{([\d,]+)\}', (pairs or listed)[1])
        return tuple(tuple(int(d) for d in group.split(',')) for group in found) or (tuple(range(devices)),)
    if iota := re.search(r'replica_groups=\[(\d+),(\d+)\]<=(\[[\d,]+\](?:T\([\d,]+\))?)', attributes):
        return _rows(_iota(iota[3]).reshape(int(iota[1]), int(iota[2])))
    if mesh := re.search(r'replica_groups=mesh\[([^\]]*)\](?:, device_ids=\(([^ ]*)\))? \{([^}]*)\}', attributes):
        sizes = {name: int(size) for name, size in re.findall(r"'(\w+)'=(\d+)", mesh[1])}
        numbers = _iota(mesh[2]) if mesh[2] else np.arange(math.prod(sizes.values()))
        parts = re.findall(r"'(\w+)'(?::\((\d+)\)(\d+))?", mesh[3])
        return _joined(numbers.reshape(-1), sizes, parts)
    raise ValueError(f'no replica groups in {attributes[:200]!r}')


def axes_of(joined: Groups, mesh: Mesh) -> tuple[str, ...]:
    """The mesh axes along which the devices of a group differ, in the mesh's order."""
    places = [np.unravel_index(np.asarray(group), mesh.devices.shape) for group in joined]
    return tuple(
        name for axis, name in enumerate(mesh.axis_names) if any(len(set(place[axis].tolist())) > 1 for place in places)
    )


def _iota(text: str) -> np.ndarray:
    """`[2,4]T(1,0)`: 0 to 7 in that shape, transposed."""
    found = re.fullmatch(r'\[([\d,]+)\](?:T\(([\d,]+)\))?', text)
    if not found:
        raise ValueError(f'no iota: {text!r}')
    shape, order = found.groups()
    numbers = np.arange(math.prod(map(int, shape.split(',')))).reshape([int(size) for size in shape.split(',')])
    return numbers.transpose([int(axis) for axis in order.split(',')]) if order else numbers


def _joined(numbers: np.ndarray, sizes: dict[str, int], parts: list[tuple[str, str, str]]) -> Groups:
    """Groups along axes of a mesh, or along a part of one: `'a':(2)4` is the part of 4 below one of 2 in axis a."""
    cuts: dict[str, list[int]] = {name: [1, size] for name, size in sizes.items()}
    for name, before, size in parts:
        if before:
            cuts[name] += [int(before), int(before) * int(size)]
    pieces = [  # (axis, what lies before the piece in the axis, the piece's size)
        (name, start, end // start) for name, ends in cuts.items() for start, end in pairwise(sorted(set(ends)))
    ]
    wanted = {
        (name, start)
        for name, before, size in parts
        for axis, start, length in pieces
        if axis == name and (not before or int(before) <= start < int(before) * int(size))
    }
    grid = numbers.reshape([size for _, _, size in pieces])
    along = [i for i, (name, start, _) in enumerate(pieces) if (name, start) in wanted]
    across = [i for i in range(len(pieces)) if i not in along]
    members = math.prod(pieces[i][2] for i in along)
    return _rows(grid.transpose(across + along).reshape(-1, members))


def _rows(array: np.ndarray) -> Groups:
    return tuple(tuple(int(number) for number in row) for row in array)
