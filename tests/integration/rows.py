"""Which rows a run was trained on, from the logs of its processes."""

import json
from pathlib import Path
from typing import NamedTuple


class Seen(NamedTuple):
    """One row, read at one step."""

    length: int
    position: int
    """Of the first row of its batch."""
    epoch: int
    row: int


def read_rows(log: Path) -> list[Seen]:
    """The rows in a log of `tests.integration.watched`."""
    return [
        Seen(line['length'], line['position'], epoch, row)
        for line in map(json.loads, log.read_text().splitlines())
        for epoch, row in zip(line['epochs'], line['rows'], strict=True)
    ]
