"""What a step's memory on one chip goes into."""

import math
from dataclasses import dataclass
from typing import Any

import jax

from experiments.planning.activations import kept_bytes
from experiments.planning.compile import Compiled, TooLarge
from train.program import Program


@dataclass(frozen=True)
class Memory:
    """Bytes on one chip."""

    parameters: int
    optimizer: int
    batch: int
    """Rows, settings and whatever else the step is given and gives back."""
    activations: int
    """What the forward pass keeps for the backward pass."""
    temporaries: int
    """All others, gradients among them."""
    code: int
    total: int
    capacity: int
    """That a program can have."""

    @property
    def left(self) -> int:
        """Below 0 where the step does not fit."""
        return self.capacity - self.total

    @property
    def fits(self) -> bool:
        return self.left >= 0


def memory_of(program: Program, compiled: Compiled | TooLarge, capacity: int) -> Memory:
    """The memory of a compiled step; of one that does not fit, all that is not state counts as temporaries."""
    state = program.abstract_state()
    parameters, optimizer = on_one_chip(state.params), on_one_chip(state.opt_state)
    if isinstance(compiled, TooLarge):
        total = compiled.bytes
        return Memory(parameters, optimizer, 0, 0, max(total - parameters - optimizer, 0), 0, total, capacity)
    stats = compiled.memory
    kept = min(kept_bytes(compiled.module), stats.temp_size_in_bytes)
    given = stats.argument_size_in_bytes + stats.output_size_in_bytes - stats.alias_size_in_bytes
    return Memory(
        parameters,
        optimizer,
        given - parameters - optimizer,
        kept,
        stats.temp_size_in_bytes - kept,
        stats.generated_code_size_in_bytes,
        compiled.bytes,
        capacity,
    )


def on_one_chip(tree: Any) -> int:
    """Bytes of a tree of abstract arrays that lie on each chip."""
    return sum(math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
