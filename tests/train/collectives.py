"""What the devices of a mesh send each other, read from a compiled program's text (HLO)."""

import re
from dataclasses import dataclass

import numpy as np
from jax.sharding import Mesh

KINDS = (
    'all-gather',
    'all-reduce',
    'reduce-scatter',
    'all-to-all',
    'ragged-all-to-all',
    'collective-permute',
    'collective-broadcast',
)
_CALL = re.compile(rf' = (?P<result>.*?) (?P<kind>{"|".join(KINDS)})(?:-start)?\(')
_GROUPS = re.compile(r'replica_groups=(\{\{.*?\}\}|\{\}|\[[^=]*?\]<=\[[^\]]*\](?:T\([^)]*\))?|mesh\[.*?\}(?=,|$))')
_PAIRS = re.compile(r'source_target_pairs=(\{\{.*?\}\}|\{\})')


@dataclass(frozen=True)
class Collective:
    """One message among devices, or as many as the loop around it has turns."""

    kind: str
    """One of KINDS."""
    axes: tuple[str, ...]
    """Mesh axes along which the devices that exchange something differ."""
    result: str
    """Type and shape of what each device has afterwards, such as 'bf16[1,768,3072]{2,1,0}'."""
    line: str
    """The whole instruction."""


def collectives(text: str, mesh: Mesh) -> list[Collective]:
    """The collectives of a program that was compiled for a mesh, in the order of its text.

    Args:
      text: of `compiled.as_text()`; device numbers in it count the mesh's devices, the last axis fastest.

    Raises:
      ValueError: groups are written in a way that is not known here.
    """
    found = []
    for line in text.splitlines():
        if call := _CALL.search(line):
            groups = _groups_of(line, mesh.size)
            found.append(Collective(call['kind'], _axes_of(groups, mesh), call['result'], line.strip()))
    return found


def _axes_of(groups: list[np.ndarray], mesh: Mesh) -> tuple[str, ...]:
    places = [np.unravel_index(group, mesh.devices.shape) for group in groups]
    crossed = [any(len(set(place[axis])) > 1 for place in places) for axis in range(mesh.devices.ndim)]
    return tuple(name for name, is_crossed in zip(mesh.axis_names, crossed, strict=True) if is_crossed)


def _groups_of(line: str, devices: int) -> list[np.ndarray]:
    """Device numbers of each group of devices that exchange something; pairs for a collective-permute.

    XLA writes them as {{0,2},{1,3}}, as [2,2]<=[2,2]T(1,0), as mesh['a'=2,'b'=2] {'a'}, or as that with
    device_ids=([2,2]T(1,0)) in between.
    """
    match = _GROUPS.search(line) or _PAIRS.search(line)
    if not match:
        raise ValueError(f'no replica groups that can be read in: {line.strip()}')
    groups = match[1]
    if groups == '{}':
        return [np.arange(devices)]
    if groups.startswith('{'):
        return [np.array([int(n) for n in group.split(',')]) for group in re.findall(r'\{([\d,]+)\}', groups)]
    if groups.startswith('mesh'):
        return _mesh_groups(groups)
    shape, order = groups.split('<=')
    return list(_iota(order).reshape(_numbers(re.match(r'\[(.*?)\]', shape)[1])))


def _mesh_groups(groups: str) -> list[np.ndarray]:
    sizes = {name: int(size) for name, size in re.findall(r"'([^']+)'=(\d+)", groups)}
    wanted = re.search(r'\{([^{}]*)\}$', groups)[1]
    if re.sub(r"'[^']+'", '', wanted).strip(', '):
        raise ValueError(f'replica groups over parts of an axis are not known here: {groups}')
    ids = np.arange(np.prod(list(sizes.values()), dtype=int))
    if listed := re.search(r'device_ids=\((.*?\]?(?:T\([\d,]*\))?)\)', groups):
        ids = _iota(listed[1]) if listed[1].startswith('[') else np.array(_numbers(listed[1]))
    names = re.findall(r"'([^']+)'", wanted)
    axes = [list(sizes).index(name) for name in names]
    grid = np.moveaxis(ids.reshape(list(sizes.values())), axes, range(-len(axes), 0))
    return list(grid.reshape(-1, np.prod([sizes[name] for name in names], dtype=int)))


def _iota(text: str) -> np.ndarray:
    """[2,4]T(1,0): the numbers from 0 in this shape, transposed, in a row."""
    shape, order = re.fullmatch(r'\[([\d,]+)\](?:T\(([\d,]+)\))?', text).groups()
    grid = np.arange(np.prod(_numbers(shape))).reshape(_numbers(shape))
    return grid.transpose(_numbers(order)).ravel() if order else grid.ravel()


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(',')]
