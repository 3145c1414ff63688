"""What an accelerator type stands for: chips, hosts, their arrangement and the names that Google gives all of it."""

import re
from dataclasses import dataclass

from data.errors import UserError

_FLAT = {1: '1x1', 4: '2x2', 8: '2x4', 16: '4x4', 32: '4x8', 64: '8x8', 128: '8x16', 256: '16x16'}
_CUBES = {
    4: '2x2x1', 8: '2x2x2', 16: '2x2x4', 32: '2x4x4', 64: '4x4x4', 128: '4x4x8', 256: '4x8x8', 512: '8x8x8',
    1024: '8x8x16', 2048: '8x16x16',
}  # fmt: skip


@dataclass(frozen=True)
class Generation:
    """One generation of TPU, after https://cloud.google.com/tpu/docs/supported-tpu-configurations."""

    name: str
    """As `experiments.plan --topology` has it."""
    runtime: str
    """The image of its machines."""
    gke: str
    """Its node label in GKE."""
    cores: int
    """Of a chip, as the accelerator type counts."""
    shapes: dict[int, str]
    """Chips -> arrangement."""


_GENERATIONS = {
    'v4': Generation('v4', 'tpu-ubuntu2204-base', 'tpu-v4-podslice', 2, _CUBES),
    'v5litepod': Generation('v5e', 'v2-alpha-tpuv5-lite', 'tpu-v5-lite-podslice', 1, _FLAT),
    'v5p': Generation('v5p', 'v2-alpha-tpuv5', 'tpu-v5p-slice', 2, _CUBES),
    'v6e': Generation('v6e', 'v2-alpha-tpuv6e', 'tpu-v6e-slice', 1, _FLAT),
}


@dataclass(frozen=True)
class Slice:
    """Chips that are rented together."""

    type: str
    generation: Generation
    chips: int

    @property
    def shape(self) -> str:
        """Arrangement of the chips, 4x4."""
        return self.generation.shapes[self.chips]

    @property
    def hosts(self) -> int:
        """Machines. Eight chips of a flat generation hang on one, all else has four a machine."""
        return 1 if self.chips <= 8 and self.generation.shapes is _FLAT else max(1, self.chips // 4)

    @property
    def topology(self) -> str:
        """As `experiments.plan --topology` takes it."""
        return f'{self.generation.name}:{self.shape}'


def parse(accelerator_type: str) -> Slice:
    """The slice that an accelerator type names: v5litepod-256, v4-32.

    Raises:
      UserError: there is no such type.
    """
    match = re.fullmatch(r'(\w+)-(\d{1,5})', accelerator_type, re.ASCII)
    generation = _GENERATIONS.get(match[1]) if match else None
    if generation is None:
        raise UserError(f'--type {accelerator_type!r}: use v4-N, v5litepod-N, v5p-N or v6e-N, such as v5litepod-16')
    sizes = {chips * generation.cores: chips for chips in generation.shapes}
    if int(match[2]) not in sizes:
        raise UserError(f'--type {accelerator_type}: {match[1]} comes in {", ".join(map(str, sizes))}')
    return Slice(accelerator_type, generation, sizes[int(match[2])])
