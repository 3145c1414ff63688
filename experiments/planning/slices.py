"""Names of TPU slices."""

import math
import re

from train.chips import CHIPS, Chip


def chip_of(name: str) -> tuple[Chip, tuple[int, ...]]:
    """The chip and the shape of a slice named as v5e:4x4 is.

    Raises:
      ValueError: there is no such slice.
    """
    found = re.fullmatch(r'(\w+):(\d+(?:x\d+){1,2})', name)
    chip = CHIPS.get(found[1]) if found else None
    if chip is None:
        raise ValueError(f'--topology {name}: use CHIP:AxB or AxBxC with one of {", ".join(CHIPS)}, such as v5e:4x4')
    shape = tuple(int(size) for size in found[2].split('x'))
    if len(shape) > chip.dimensions:
        raise ValueError(f'--topology {name}: {chip.name} slices have {chip.dimensions} dimensions')
    if not 0 < math.prod(shape) <= chip.largest:
        raise ValueError(f'--topology {name}: {math.prod(shape)} chips; {chip.name} slices have 1 to {chip.largest}')
    return chip, shape
