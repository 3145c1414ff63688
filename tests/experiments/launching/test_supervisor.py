"""The supervisor by itself, in a home folder of the test's own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SUPERVISOR = Path(__file__).parents[3] / 'experiments' / 'launching' / 'supervisor.py'
SAVES = """
import os, pathlib, signal, sys, time
def save(*_):
    signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
    print('saving', flush=True)
    time.sleep(0.5)
    pathlib.Path(sys.argv[1]).write_text('saved')
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print('ready', flush=True)
time.sleep(60)
"""


class Home:
    """A machine's home folder."""

    def __init__(self, folder: Path):
        self.folder, self.job = folder, folder / 'cloze-job'
        self.environment = {**os.environ, 'HOME': str(folder), 'CLOZE_SUPERVISOR_PAUSE': '0.1'}
        copy = folder / 'cloze' / 'experiments' / 'launching' / 'supervisor.py'
        copy.parent.mkdir(parents=True)
        copy.write_text(SUPERVISOR.read_text())
        self.program = [sys.executable, str(copy)]

    def __call__(self, *words: str, prefix: tuple[str, ...] = ()) -> str:
        ran = subprocess.run([*prefix, *self.program, *words], env=self.environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    @property
    def state(self) -> dict:
        return json.loads(self('state'))

    @property
    def log(self) -> str:
        return (self.job / 'log.txt').read_text()

    def until(self, condition) -> None:
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, self.log
            time.sleep(0.05)

    def ended(self) -> dict:
        self.until(lambda: self.state['state'] != 'running')
        return self.state


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    yield home
    if (home.job / 'pid').exists():
        subprocess.run([*home.program, 'stop'], env=home.environment)


def python(text: str) -> list[str]:
    return [sys.executable, '-c', text]


def test_nothing_was_started(home):
    assert home.state['state'] == 'absent'
    home('stop')


def test_start_returns_and_the_command_outlives_its_session(home):
    # `setsid` is a session as ssh makes one; a hangup of all that is in it follows, as when the connection ends.
    shell = subprocess.Popen(
        [*home.program, 'start', '--', *python('import time; time.sleep(1); print("lived")')],
        env=home.environment, start_new_session=True,
    )  # fmt: skip
    assert shell.wait() == 0
    with contextlib.suppress(ProcessLookupError):  # nothing of ours is left in it
        os.killpg(shell.pid, signal.SIGHUP)
    pid = int((home.job / 'pid').read_text())
    assert os.getsid(pid) != os.getsid(0) and os.getsid(pid) != shell.pid
    assert home.ended() | {'host': '', 'child': 0} == {
        'state': 'finished', 'code': 0, 'host': '', 'child': 0,
        'command': python('import time; time.sleep(1); print("lived")'),
    }  # fmt: skip
    assert home.log == 'lived\n'


def test_its_own_environment_comes_first_and_it_runs_in_the_repository(home):
    program = home.folder / 'cloze' / '.venv' / 'bin' / 'show'
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\npwd\n')
    program.chmod(0o755)
    home('start', '--', 'show')
    home.ended()
    assert home.log == f'{home.folder}/cloze\n'


def test_a_failure_is_tried_again_until_it_works(home):
    count = 'import pathlib, sys; p = pathlib.Path("n"); p.open("a").write("x"); sys.exit(len(p.read_text()) < 3)'
    home('start', '--retries', '4', '--', *python(count))
    assert home.ended()['state'] == 'finished'
    assert home.log.count('again') == 2


@pytest.mark.parametrize(('code', 'times'), [(1, 3), (2, 1)])
def test_a_failure_ends_when_the_retries_are_used_up_a_mistake_at_once(home, code, times):
    home('start', '--retries', '2', '--', *python(f'print("tried"); raise SystemExit({code})'))
    ended = home.ended()
    assert (ended['state'], ended['code'], ended['log'][-1]) == ('failed', code, 'tried')
    assert home.log.count('tried') == times


def test_a_command_that_is_not_there_is_a_mistake(home):
    home('start', '--', 'no-such-program')
    assert home.ended()['state'] == 'failed' and 'no-such-program' in home.log


def test_a_second_start_changes_nothing(home):
    home('start', '--', *python('import time; print("one"); time.sleep(60)'))
    assert home('start', '--', 'other') == 'already running\n'
    assert home.state['command'][-1] != 'other'


def test_stop_lets_it_save_and_start_goes_on(home):
    saved = home.folder / 'saved'
    home('start', '--', *python(SAVES), str(saved))
    home.until(lambda: 'ready' in home.log)
    home('stop')
    assert home.state['state'] == 'stopped' and saved.read_text() == 'saved'
    home('start', '--', *python('print("on")'))
    assert home.ended()['state'] == 'finished' and home.log == 'on\n'


def test_a_second_stop_waits_for_the_first_and_ends_nothing_unsaved(home):
    saved = home.folder / 'saved'
    home('start', '--', *python(SAVES), str(saved))
    home.until(lambda: 'ready' in home.log)
    first = subprocess.Popen([*home.program, 'stop'], env=home.environment)
    home.until(lambda: 'saving' in home.log)
    home('stop')
    assert home.state['code'] == 0 and saved.read_text() == 'saved' and first.wait() == 0


def test_a_shutdown_is_no_finish_though_the_command_saves_and_ends_with_0(home):
    saved = home.folder / 'saved'
    home('start', '--', *python(SAVES), str(saved))
    home.until(lambda: 'ready' in home.log)
    os.kill(int((home.job / 'pid').read_text()), signal.SIGTERM)
    ended = home.ended()
    assert (ended['state'], ended['code']) == ('interrupted', 0) and saved.read_text() == 'saved'


def test_a_killed_supervisor_is_found_out_and_its_log_kept(home):
    hangs_once = 'n = pathlib.Path("n"); n.exists() or n.touch() or time.sleep(60)'
    command = python(f'import pathlib, time; print("line", flush=True); {hangs_once}')
    home('start', '--', *command)
    home.until(lambda: 'line' in home.log)
    os.kill(int((home.job / 'pid').read_text()), signal.SIGKILL)
    os.killpg(home.state['child'], signal.SIGKILL)
    home.until(lambda: home.state['state'] == 'interrupted')
    home('start', '--', *command)
    home.ended()
    assert home.log == 'line\nline\n'
    home('start', '--', *python('print("another")'))
    home.ended()
    assert home.log == 'another\n'


def test_a_half_written_state_stands_in_no_ones_way(home):
    home.job.mkdir()
    (home.job / 'state.json').write_text('{"sta')
    assert home.state['state'] == 'absent'
    home('start', '--', *python(''))
    assert home.ended()['state'] == 'finished'
