"""TPU slices by name, as devices to compile for; none has to be there."""

import importlib.util
import math
from dataclasses import dataclass

import jax
from jax.experimental import topologies

from data.errors import UserError
from experiments.planning.slices import chip_of
from train.chips import Chip


@dataclass(frozen=True)
class Slice:
    """Chips that are connected. Each is one JAX device (v4 and v5p: both cores as one, as JAX has them on a TPU VM)."""

    name: str
    """Such as v5e:4x4."""
    chip: Chip
    devices: tuple[jax.Device, ...]


def slice_of(name: str) -> Slice:
    """The slice of that name. `experiments.devices.prepare_for_topologies` comes before the first device of all.

    Raises:
      ValueError: there is no slice of that name.
      UserError: libtpu is not installed, or has no such slice.
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
