"""A cloud in a folder: a gcloud on PATH, workers with the few programs of a TPU image, and a little repository."""

import json
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from experiments.launching.flags import LaunchFlags
from experiments.launching.gcloud import Gcloud
from experiments.launching.job import Job

ROOT = Path(__file__).parents[3]
STAND_IN = Path(__file__).with_name('stand_in_gcloud.py')
JOB = """
import json, os, pathlib, sys, time
host = pathlib.Path.home().name
folder = pathlib.Path('runs/w')
(folder / 'checkpoints').mkdir(parents=True, exist_ok=True)
(folder / f'argv-{host}.json').write_text(json.dumps(sys.argv[1:]))
record = folder / 'checkpoints' / f'step-{host}'
first = int(record.read_text()) if record.exists() else 0
for step in range(first, int(sys.argv[1])):
    print(f'step {step}', flush=True)
    time.sleep(0.05)
    (folder / f'new-{host}').write_text(str(step + 1))
    os.replace(folder / f'new-{host}', record)
(folder / f'result-{host}').write_text(f'from {first} to {sys.argv[1]}')
sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2].isdigit() else 0)
"""
"""Counts to its first argument, from where it was before, and ends with its second as exit code."""
PYTHON = """#!/bin/sh
case "$1 $2" in
  '-c import'*) exit 0 ;;
  '-m venv') mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/pip" ;;
  '-m pip') echo "$HOME $*" >> "$CLOUD/pip.log" ;;
  *) exec {python} "$@" ;;
esac
"""
GCSFUSE = """#!/bin/sh
for word; do
  case "$word" in --only-dir=*) folder=${word#--only-dir=} ;; --*) ;; *) bucket=${mount:-}; mount=$word ;; esac
done
mkdir -p "$CLOUD/buckets/$bucket/$folder" && rmdir "$mount" && ln -s "$CLOUD/buckets/$bucket/$folder" "$mount"
"""
NAMED = """
import os, socket
socket.gethostname = lambda: 'host-' + os.path.basename(os.environ['HOME'])
"""


@dataclass
class Cloud:
    """What tests ask of the stand-in."""

    folder: Path
    repository: Path
    said: list[str]
    slept: list[float]

    def cues(self, *cues: dict) -> None:
        """What is to fail, and how."""
        (self.folder / 'cues.json').write_text(json.dumps(cues))

    def calls(self, *words: str) -> list[list[str]]:
        """The calls so far that hold all these words."""
        lines = (self.folder / 'calls.jsonl').read_text().splitlines()
        return [call for call in map(json.loads, lines) if all(word in call for word in words)]

    def job(self, *command: str, **flags) -> Job:
        """A launch of `job.py` with these arguments."""
        flags = LaunchFlags(**{'name': 'n', 'zone': 'us-west4-a', 'type': 'v5litepod-8', **flags})
        gcloud = Gcloud(flags, sleep=self._sleep, log=self.said.append)
        return Job(flags, ['python', 'job.py', *command], gcloud, self.repository)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        assert len(self.slept) < 100, self.said
        time.sleep(0.02)

    @property
    def empty(self) -> bool:
        """Whether nothing is left that costs money."""
        return not list(self.folder.glob('tpu-vm/*')) and not list(self.folder.glob('queued-resources/*'))


@pytest.fixture
def cloud(tmp_path, monkeypatch):
    """The stand-in first on PATH, in a working directory of the test's own."""
    cloud = Cloud(tmp_path / 'cloud', tmp_path / 'repository', [], [])
    (cloud.folder / 'bin').mkdir(parents=True)
    (tmp_path / 'bin').mkdir()
    programs = {
        tmp_path / 'bin' / 'gcloud': f'#!/bin/sh\nexec {sys.executable} -S -E {STAND_IN} "$@"\n',
        cloud.folder / 'bin' / 'python3.13': PYTHON.replace('{python}', sys.executable),
        cloud.folder / 'bin' / 'python3': f'#!/bin/sh\nexec {sys.executable} "$@"\n',
        cloud.folder / 'bin' / 'gcsfuse': GCSFUSE,
        cloud.folder / 'bin' / 'hostname': '#!/bin/sh\necho "host-${HOME##*/}"\n',
        cloud.folder / 'bin' / 'sitecustomize.py': NAMED,
        cloud.folder / 'bin' / 'mountpoint': '#!/bin/sh\n[ -L "$2" ]\n',
    }
    for path, text in programs.items():
        path.write_text(text)
        path.chmod(0o755)
    cloud.cues()
    (cloud.folder / 'calls.jsonl').touch()
    launching = cloud.repository / 'experiments' / 'launching'
    launching.mkdir(parents=True)
    for name in ('supervisor.py', 'setup.sh'):
        shutil.copy(ROOT / 'experiments' / 'launching' / name, launching)
    (cloud.repository / 'job.py').write_text(JOB)
    (cloud.repository / 'requirements-tpu.txt').touch()
    (cloud.repository / '.gitignore').write_text('/.venv\n/runs\nsecret\n')
    (cloud.repository / 'secret').touch()
    subprocess.run(['git', 'init', '-q'], cwd=cloud.repository, check=True)
    monkeypatch.setenv('CLOUD', str(cloud.folder))
    monkeypatch.setenv('PATH', f'{tmp_path / "bin"}:/usr/bin:/bin')
    monkeypatch.chdir(tmp_path)
    yield cloud
    for pid in cloud.folder.glob('machines/*/*/cloze-job/pid'):  # what a failed test has left running
        subprocess.run(['kill', f'-{signal.SIGTERM.value}', pid.read_text()], capture_output=True)
