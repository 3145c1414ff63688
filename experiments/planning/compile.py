"""A stage's real train step, compiled for a TPU slice."""

import re
from dataclasses import dataclass, field
from functools import cached_property

import jax

from experiments.planning import hlo
from train.chips import GIB
from train.program import Program


@dataclass(frozen=True)
class Compiled:
    """A step that the compiler made. Figures are of one chip."""

    executable: jax.stages.Compiled = field(repr=False)

    @cached_property
    def memory(self):
        """Sizes in bytes, as jax names them: argument_size_in_bytes, temp_size_in_bytes and so on."""
        return self.executable.memory_analysis()

    @property
    def bytes(self) -> int:
        """Of memory that it takes: what it is given and gives back (donated buffers once), temporaries and its code."""
        memory = self.memory
        return (
            memory.argument_size_in_bytes
            + memory.output_size_in_bytes
            - memory.alias_size_in_bytes
            + memory.temp_size_in_bytes
            + memory.generated_code_size_in_bytes
        )

    @property
    def xla(self) -> dict[str, float]:
        """XLA's own counts, 'flops' and 'bytes accessed' among them: a loop's body once, a kernel's work not at all."""
        return self.executable.cost_analysis()

    @cached_property
    def module(self) -> hlo.Module:
        """The program's instructions."""
        return hlo.parse(self.executable.as_text())


@dataclass(frozen=True)
class TooLarge:
    """A step that the compiler refused, since it needs more memory than a chip has."""

    bytes: int
    """That it needs, by the compiler's message."""
    message: str


def compile_step(program: Program, stage: int) -> Compiled | TooLarge:
    """Compiles a stage's step for the devices of the program's mesh, which need not be there."""
    lowered = program.lower_step(stage)
    try:
        return Compiled(lowered.compile())
    except jax.errors.JaxRuntimeError as error:
        if 'RESOURCE_EXHAUSTED' not in str(error):
            raise
        return TooLarge(needed(str(error)), str(error))


def needed(message: str) -> int:
    """Bytes of memory that a program needs, by libtpu's refusal; 0 where it does not say."""
    sizes = [
        float(size) * {'K': 2**10, 'M': 2**20, 'G': GIB, 'T': 2**40}[unit]
        for pattern in (r'hbm usage >= ([\d.]+)([KMGT])', r'Used ([\d.]+)([KMGT]) of', r'\(([\d.]+)([KMGT])\) exceeds')
        for size, unit in re.findall(pattern, message)
    ]
    return int(max(sizes, default=0))
