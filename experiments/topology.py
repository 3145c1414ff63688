"""TPU topologies to compile for on any machine: no TPU is needed, only libtpu."""

import os
from importlib.util import find_spec

import jax

from data.errors import UserError


def topology_devices(name: str) -> list[jax.Device]:
    """The chips of a topology such as 'v5e:4x4', to compile programs for; nothing runs on them.

    Raises:
      UserError: libtpu is not installed, or it knows no such topology.
    """
    if find_spec('libtpu') is None:
        raise UserError('libtpu is not installed here: make venv-peers installs it into .venv-peers')
    # libtpu looks for a TPU and takes a lock on it unless it is told not to.
    for variable in ('TPU_SKIP_MDS_QUERY', 'ALLOW_MULTIPLE_LIBTPU_LOAD'):
        os.environ.setdefault(variable, '1')
    from jax.experimental import topologies

    try:
        return topologies.get_topology_desc(platform='tpu', topology_name=name).devices
    except (RuntimeError, ValueError) as error:
        raise UserError(f'topology {name!r}: {str(error).splitlines()[0]}') from error
