"""What accelerators can do at best, by the name that JAX gives them.

TPU: docs.cloud.google.com/tpu/docs/v4, v5e, v5p and v6e, and for the links (one of them, one way) jax-ml/scaling-book,
tpus.md. Available memory is what libtpu 0.0.42 leaves to programs, by its refusals of programs that need more. GPU:
NVIDIA's data sheets, dense bfloat16 without sparsity.
"""

from dataclasses import dataclass

GIB = 2**30


@dataclass(frozen=True)
class Chip:
    """A TPU chip as it stands in a slice. Rates are peaks; nothing reaches them all at once."""

    name: str
    """As topologies are named: v5e."""
    device_kind: str
    """JAX's name for it."""
    flops: float
    """bfloat16 operations a second, a multiply-add as two."""
    hbm: float
    """Bytes of memory that a program can have."""
    hbm_rate: float
    """Bytes a second between memory and chip."""
    link_rate: float
    """Bytes a second over one link to a neighbour, one way."""
    dimensions: int
    """Of the torus of links: each chip has two links along each."""
    largest: int
    """Chips of the largest slice that can be had (a pod of v5p has 8,960)."""


CHIPS = {
    chip.name: chip
    for chip in (
        Chip('v4', 'TPU v4', 275e12, 30.75 * GIB, 1200e9, 45e9, 3, 4096),
        Chip('v5e', 'TPU v5 lite', 197e12, 15.75 * GIB, 819e9, 45e9, 2, 256),
        Chip('v5p', 'TPU v5', 459e12, 95.74 * GIB, 2765e9, 90e9, 3, 6144),
        Chip('v6e', 'TPU v6 lite', 918e12, 31.25 * GIB, 1638e9, 90e9, 2, 256),
    )
}

GPUS = {
    'NVIDIA A100-SXM4-40GB': 312e12,
    'NVIDIA A100-SXM4-80GB': 312e12,
    'NVIDIA H100 80GB HBM3': 989e12,
    'NVIDIA H200': 989e12,
}
"""bfloat16 operations a second by JAX's name for the device."""


def peak_flops(device_kind: str) -> float | None:
    """bfloat16 operations a second at best, of one JAX device of this kind; None: not known (a CPU)."""
    known = {chip.device_kind: chip.flops for chip in CHIPS.values()} | GPUS
    return known.get(device_kind)
