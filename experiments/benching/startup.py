"""Seconds from the start of a process to its first step."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = ('-m', 'experiments.pretrain', 'configs/masking_rate.py', '--scale', 'smoke')


def measure() -> tuple[float, float]:
    """With an empty compilation cache, and again with a warm one."""
    with tempfile.TemporaryDirectory() as folder:
        return _seconds(Path(folder), 'cold'), _seconds(Path(folder), 'warm')


def _seconds(folder: Path, name: str) -> float:
    workdir = folder / name
    flags = ['--workdir', str(workdir), '--run.compilation_cache', str(folder / 'cache'), '--run.log_every', '1']
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, *COMMAND, *flags], stdout=subprocess.DEVNULL)
    try:
        while process.poll() is None:
            if (workdir / 'metrics.jsonl').exists() and '"kind": "train"' in (workdir / 'metrics.jsonl').read_text():
                return time.perf_counter() - began
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    raise RuntimeError(f'{" ".join(COMMAND)} ended with {process.returncode} before its first step')
