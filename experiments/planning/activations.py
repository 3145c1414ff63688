"""What the forward pass keeps in memory for the backward pass, from a compiled program's text."""

import re

from experiments.planning.hlo import Array, Computation, Instruction, Module

Leaf = tuple[str, int]
"""An instruction of a computation, and which array of its result."""


def kept_bytes(module: Module) -> int:
    """Bytes in HBM that instructions of the forward pass write and instructions of the backward pass read.

    JAX's names for them tell which is which. What is kept in every round of a loop, such as that over replicas, counts
    once, since its place is used again.
    """
    computations = {computation.name: computation for computation, _, _ in module.runs()}
    return sum(map(_kept, computations.values()))


def _kept(computation: Computation) -> int:
    leaves: dict[str, tuple[Leaf, ...]] = {}
    kept: dict[Leaf, Array] = {}
    for each in computation.instructions.values():
        given = tuple(leaf for name in each.operands for leaf in leaves[name])
        leaves[each.name] = _leaves(each, given)
        if 'transpose(' in each.source:
            for name, index in given:
                writer = computation.instructions[name]
                if 'jvp(' in writer.source and 'transpose(' not in writer.source and writer.result[index].in_hbm:
                    kept[name, index] = writer.result[index]
    return sum(array.padded_bytes for array in kept.values())


def _leaves(each: Instruction, given: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
    """The arrays that a result is made of, by the instruction that wrote each of them."""
    if each.opcode in ('tuple', 'bitcast', 'optimization-barrier'):
        return given
    if each.opcode == 'get-tuple-element':
        index = int(re.search(r'index=(\d+)', each.attributes)[1])
        # A tuple within a tuple is an asynchronous operation's, of which nothing is kept.
        return given[index : index + 1] if len(each.result) == 1 else given
    return tuple((each.name, index) for index in range(len(each.result)))
