"""Seconds from the start of a process to its first step."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from train.metrics import read

COMMAND = ('-m', 'experiments.pretrain', 'configs/masking_rate.py', '--scale', 'smoke', '--run.log_every', '1')


def measure(store: Path) -> tuple[float, float]:
    """With an empty compilation cache, and again with a warm one; the corpus is prepared."""
    with tempfile.TemporaryDirectory() as folder:
        cold, warm = (_seconds(Path(folder) / name, Path(folder) / 'cache', store) for name in ('cold', 'warm'))
        return cold, warm


def _seconds(workdir: Path, cache: Path, store: Path) -> float:
    flags = ('--workdir', workdir, '--run.compilation_cache', cache, '--data.store', store.absolute())
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *COMMAND, *map(str, flags)], stdout=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            if any(record['kind'] == 'train' for record in read(workdir)):
                return time.perf_counter() - began
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    raise RuntimeError(f'{" ".join(COMMAND)} ended with {process.returncode} before its first step')
