"""Seconds from the start of `pretrain` to its first step, with all programs compiled before."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from train.metrics import read

COMMAND = ['-m', 'experiments.pretrain', 'configs/masking_rate.py', '--scale', 'smoke', '--run.log_every', '1']


def measure(store: Path, cache: Path, timeout: float = 300.0) -> float:
    """Seconds from the start of a process to the record of its first step.

    The first of two runs fills the compilation cache; the second is timed.

    Args:
      store: the corpus, prepared.
      cache: folder of compiled programs.
    """
    return [_first_step(store, cache, timeout) for _ in range(2)][-1]


def _first_step(store: Path, cache: Path, timeout: float) -> float:
    with tempfile.TemporaryDirectory() as folder:
        where = ['--workdir', folder, '--data.store', str(store), '--run.compilation_cache', str(cache)]
        began = time.perf_counter()
        run = subprocess.Popen([sys.executable, *COMMAND, *where], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            while not any(record['kind'] == 'train' for record in _records(Path(folder))):
                if run.poll() is not None:
                    raise RuntimeError(f'pretrain ended before its first step: {run.stderr.read().decode()[-500:]}')
                if time.perf_counter() - began > timeout:
                    raise RuntimeError(f'pretrain made no step in {timeout:.0f} s')
                time.sleep(0.02)
            return time.perf_counter() - began
        finally:
            run.kill()
            run.communicate()


def _records(workdir: Path) -> list[dict]:
    return read(workdir) if (workdir / 'metrics.jsonl').exists() else []
