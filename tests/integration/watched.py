"""Runs a command and notes which rows it trains on; at one of its batches it may send itself a signal.

python -m tests.integration.watched LOG [SIGNAL@LENGTH:POSITION] -- COMMAND WORDS: each batch becomes a line of LOG,
with its length, the position of its first row over all processes, and the rows of this process.
"""

import json
import os
import sys
from importlib import import_module

from experiments import cli
from train import loop


def watch(log: str, signals: list[str]) -> None:
    """Has the training loop read its batches through this."""
    batches = loop.batches

    def watched(split, vocabulary, *, start: int, batch_size: int, length: int, **more):
        for number, host in enumerate(
            batches(split, vocabulary, start=start, batch_size=batch_size, length=length, **more)
        ):
            position = start + number * batch_size
            line = {'length': length, 'position': position, 'epochs': host.epochs_SxB.ravel().tolist()}
            with open(log, 'a') as file:
                file.write(json.dumps({**line, 'rows': host.row_ids_SxB.ravel().tolist()}) + '\n')
            for each in signals:
                signal, _, at = each.partition('@')
                if at == f'{length}:{position}':
                    os.kill(os.getpid(), int(signal))
            yield host

    loop.batches = watched


if __name__ == '__main__':
    at = sys.argv.index('--')
    watch(sys.argv[1], sys.argv[2:at])
    command = sys.argv[at + 1]
    sys.argv = [f'{command}.py', *sys.argv[at + 2 :]]
    cli.run(import_module(f'experiments.{command}').main)
