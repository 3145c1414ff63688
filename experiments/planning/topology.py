"""TPU slices by name, as devices to compile for; none has to be there."""

import importlib.util
import math
import os
from dataclasses import dataclass

import jax
from jax.experimental import topologies

from data.errors import UserError
from experiments.planning.slices import chip_of
from train.chips import Chip

QUIET = {
    'ALLOW_MULTIPLE_LIBTPU_LOAD': '1',  # another process may compile too
    'TPU_SKIP_MDS_QUERY': '1',
    'TPU_ACCELERATOR_TYPE': 'v5litepod-1',  # of this machine, which has none: any will do, and without one it warns
    'TPU_WORKER_HOSTNAMES': 'localhost',
    'TPU_LOG_DIR': 'disabled',
    'TPU_STDERR_LOG_LEVEL': '3',
    'TPU_MIN_LOG_LEVEL': '3',
    'TF_CPP_MIN_LOG_LEVEL': '3',
}
"""Has libtpu look for no TPU, lock none, and write nothing that a user could not act on."""


@dataclass(frozen=True)
class Slice:
    """Chips that are connected. Each is one JAX device (v4 and v5p: both cores as one, as JAX has them on a TPU VM)."""

    name: str
    """Such as v5e:4x4."""
    chip: Chip
    devices: tuple[jax.Device, ...]


def slice_of(name: str) -> Slice:
    """The slice of that name. Where JAX has not started yet, it then starts on the CPU alone.

    Raises:
      ValueError: there is no slice of that name.
      UserError: libtpu is not installed, or has no such slice.
    """
    chip, shape = chip_of(name)
    if importlib.util.find_spec('libtpu') is None:
        raise UserError(
            'compiling for TPUs needs libtpu, which is not installed here: pip install -r requirements-tpu.txt'
        )
    os.environ.update(QUIET)
    jax.config.update('jax_platforms', 'cpu')
    options = {'chip_config_name': 'megacore'} if chip.name == 'v4' else {}
    if math.prod(shape) == 1:
        options['chips_per_host_bounds'] = (1, 1, 1)
    try:
        found = topologies.get_topology_desc(platform='tpu', topology_name=name, **options)
    except jax.errors.JaxRuntimeError as error:
        raise UserError(f'--topology {name}: {str(error).splitlines()[0]}') from None
    return Slice(name, chip, tuple(found.devices))
