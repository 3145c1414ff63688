"""A command as several processes of one run on this machine."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.integration.commands import ROOT, Place
from tests.integration.rows import Seen, read_rows

PATIENCE = 900
"""Seconds that a loaded machine may take for a run."""


@dataclass
class Run:
    """The processes of one run, under way or ended."""

    processes: list[subprocess.Popen]
    logs: list[Path]

    def said(self, number: int = 0) -> str:
        return self.logs[number].with_suffix('.txt').read_text()

    def rows(self) -> list[Seen]:
        """What all processes read to train on."""
        return [seen for log in self.logs if log.exists() for seen in read_rows(log)]

    def codes(self, within: float = PATIENCE) -> list[int]:
        """Every process's exit code; fails where one has none within so many seconds."""
        until = time.monotonic() + within
        try:
            return [process.wait(max(until - time.monotonic(), 0.1)) for process in self.processes]
        except subprocess.TimeoutExpired:
            raise AssertionError(f'a process goes on after {within} s\n{self.all_said()}') from None
        finally:
            for process in self.processes:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                process.wait()

    def all_said(self) -> str:
        return '\n'.join(f'process {number}:\n{self.said(number)}' for number in range(len(self.processes)))

    def ends(self, *codes: int) -> 'Run':
        """Itself, once all processes have ended with these exit codes (0 if none are given)."""
        found = self.codes()
        assert found == (list(codes) or [0] * len(self.processes)), f'{found}\n{self.all_said()}'
        return self


def start(place: Place, name: str, count: int, *words, signals: dict[int, str] | None = None, devices: int = 2) -> Run:
    """Starts `COMMAND WORDS` as `count` processes of `devices` devices each, under `tests.integration.watched`.

    Args:
      words: PROCESS in them stands for a process's number.
      name: of the logs.
      signals: process -> what it sends itself, and when.
    """
    port = _free_port()
    run = Run([], [])
    for number in range(count):
        log = place.folder / f'{name}-{number}.rows'
        log.unlink(missing_ok=True)
        signal = [signals[number]] if signals and number in signals else []
        joined = {
            'JAX_COORDINATOR_ADDRESS': f'127.0.0.1:{port}',
            'JAX_NUM_PROCESSES': f'{count}',
            'JAX_PROCESS_ID': f'{number}',
        }
        with open(log.with_suffix('.txt'), 'w') as said:
            process = subprocess.Popen(
                [
                    *[sys.executable, '-m', 'tests.integration.watched', str(log), *signal, '--'],
                    *[str(word).replace('PROCESS', str(number)) for word in (*words, '--run.devices', devices)],
                ],
                cwd=place.folder,
                env={**os.environ, 'PYTHONPATH': str(ROOT), **(joined if count > 1 else {})},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
            )
        run.processes.append(process)
        run.logs.append(log)
    return run


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]
