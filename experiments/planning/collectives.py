"""What the chips of a slice send each other in a step: by kind, mesh axis and bytes, from the compiled program."""

import re
from collections import defaultdict
from dataclasses import dataclass

import jax
import numpy as np
from jax.sharding import Mesh

from experiments.planning.groups import Groups, axes_of, groups
from experiments.planning.hlo import Computation, Instruction, Module
from train.chips import Chip

KINDS = ('all-reduce', 'all-gather', 'reduce-scatter', 'all-to-all', 'collective-permute', 'collective-broadcast')


@dataclass(frozen=True)
class Collective:
    """All collectives of a step that are alike."""

    kind: str
    axes: tuple[str, ...]
    """Mesh axes along which it joins devices."""
    count: int
    """A step."""
    bytes: int
    """Of the whole array that is summed, gathered, scattered or sent, on one chip, in all of them together."""
    seconds: float
    """That the links of a chip need for it at their peak."""


def collectives(module: Module, mesh: Mesh, chip: Chip) -> tuple[Collective, ...]:
    """Every collective of a step, the largest first. Those of one device are none.

    One that runs beside other work stands in several fusions in turn: where it starts, where it goes on, and where it
    ends. All of them name its channel.
    """
    found: dict[tuple[str, tuple[str, ...]], list[float]] = defaultdict(lambda: [0, 0, 0.0])
    seen = set()
    for computation, instruction, times in module.runs():
        for where, each in [(computation, instruction), *module.inside(instruction)]:
            kind = each.opcode.removesuffix('-start')
            if kind not in KINDS:
                continue
            channel = re.search(r'channel_id=\d+', each.attributes)
            if channel and where is not computation:
                if (computation.name, channel[0]) in seen:
                    continue
                seen.add((computation.name, channel[0]))
            joined = groups(each.attributes, mesh.devices.size)
            axes = axes_of(joined, mesh)
            if not axes:
                continue
            size = _bytes(where, each, kind)
            total = found[kind, axes]
            total[0] += times
            total[1] += times * size
            total[2] += times * size * _passes(kind, len(joined[0])) / _rate(joined, mesh, chip)
    listed = [Collective(kind, axes, *total) for (kind, axes), total in found.items()]
    return tuple(sorted(listed, key=lambda each: -each.bytes))


def _bytes(where: Computation, each: Instruction, kind: str) -> int:
    """What goes in; of a gather, what comes out."""
    given = sum(array.bytes for name in each.operands for array in where.instructions[name].result)
    if kind != 'all-gather':
        return given
    came = sum(array.bytes for array in each.result)
    # The result of its asynchronous form holds what goes in, too.
    return came - given if each.opcode.endswith('-start') else came


def _passes(kind: str, members: int) -> float:
    """How often the whole array goes over each chip's links, in a ring of `members` (scaling-book, sharding.md)."""
    share = (members - 1) / members
    return {'all-reduce': 2 * share, 'all-to-all': members / 4, 'collective-permute': 1.0}.get(kind, share)


def _rate(joined: Groups, mesh: Mesh, chip: Chip) -> float:
    """Bytes a second that a ring through the first group can move past each of its chips.

    Each dimension of the slice along which the group extends gives a link in both directions of the ring, and one alone
    where the slice does not close in that dimension.
    """
    coordinates = np.array([_coordinates(device, chip) for device in mesh.devices.flat])
    whole = coordinates.max(axis=0) + 1
    members = coordinates[list(joined[0])]
    extended = [d for d in range(chip.dimensions) if len(set(members[:, d].tolist())) > 1]
    return chip.link_rate * max(sum(2 if closes(whole, d, chip) else 1 for d in extended), 1)


def closes(slice_shape: np.ndarray, dimension: int, chip: Chip) -> bool:
    """Whether the last chip of a dimension has a link to the first: v4 and v5p in cubes of 4, v5e and v6e at 16."""
    if chip.dimensions == 3:
        return all(int(size) % 4 == 0 for size in slice_shape[:3])
    return int(slice_shape[dimension]) == 16


def _coordinates(device: jax.Device, chip: Chip) -> tuple[int, ...]:
    return tuple(device.coords)[: chip.dimensions]
