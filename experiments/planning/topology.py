"""TPU slices by name, as devices to compile for; none has to be there."""

import importlib.util
import math
import re
from dataclasses import dataclass

import jax
from jax.experimental import topologies

from data.errors import UserError
from train.chips import CHIPS, Chip


@dataclass(frozen=True)
class Slice:
    """Chips that are connected. Each is one JAX device (v4 and v5p: both cores as one, as JAX has them on a TPU VM)."""

    name: str
    """Such as v5e:4x4."""
    chip: Chip
    devices: tuple[jax.Device, ...]


def chip_of(name: str) -> tuple[Chip, tuple[int, ...]]:
    """The chip of a topology and the slice's shape.

    Raises:
      UserError: there is no such topology.
    """
    found = re.fullmatch(r'(\w+):(\d+(?:x\d+){1,2})', name)
    chip = CHIPS.get(found[1]) if found else None
    if chip is None:
        raise UserError(f'--topology {name}: use CHIP:AxB or AxBxC with one of {", ".join(CHIPS)}, such as v5e:4x4')
    shape = tuple(int(size) for size in found[2].split('x'))
    if len(shape) > chip.dimensions:
        raise UserError(f'--topology {name}: {chip.name} slices have {chip.dimensions} dimensions')
    if not 0 < math.prod(shape) <= chip.largest:
        raise UserError(f'--topology {name}: {math.prod(shape)} chips; {chip.name} slices have 1 to {chip.largest}')
    return chip, shape


def slice_of(name: str) -> Slice:
    """The slice of that name. `experiments.devices.prepare_for_topologies` comes before the first device of all.

    Raises:
      UserError: there is no such topology, or libtpu is not installed.
    """
    chip, shape = chip_of(name)
    if importlib.util.find_spec('libtpu') is None:
        raise UserError(
            'compiling for TPUs needs libtpu, which is not installed here: pip install -r requirements-tpu.txt'
        )
    options = {'chip_config_name': 'megacore'} if chip.name == 'v4' else {}
    if math.prod(shape) == 1:
        options['chips_per_host_bounds'] = (1, 1, 1)
    try:
        found = topologies.get_topology_desc(platform='tpu', topology_name=name, **options)
    except jax.errors.JaxRuntimeError as error:
        raise UserError(f'--topology {name}: {str(error).splitlines()[0]}') from None
    return Slice(name, chip, tuple(found.devices))
