"""Keeps a command running on one machine after the ssh session that started it has ended. Standard library alone.

python3 supervisor.py start [--retries N] -- COMMAND    returns as soon as the command is under way
python3 supervisor.py state                             one line of JSON
python3 supervisor.py stop                              asks the command to save and end, and waits for that

The folder ~/cloze-job holds log.txt, state.json, pid and lock. The lock is the truth: whoever holds it runs, and the
system lets it go with its process, however that ends. States: running; finished (exit code 0); failed (2, a user's
mistake, or any other code once the retries are used up); stopped (by `stop`); interrupted (by a shutdown, or killed).
"""

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = Path.home() / 'cloze-job'
RETRIES = 5
PAUSE = float(os.environ.get('CLOZE_SUPERVISOR_PAUSE', '10'))
"""Seconds before a command is tried again."""
GRACE = 900
"""Seconds that a command has to save and end."""
MISTAKE = 2
TRIED = 'supervisor: exit code'
"""How a line of the log begins that says that a try has failed and another comes."""


class Supervisor:
    """Runs one command until it has finished, failed for good or was told to end."""

    def __init__(self, command: list[str], retries: int):
        self.command, self.retries = command, retries
        self.child: subprocess.Popen | None = None
        self.told: subprocess.Popen | None = None
        self.ending = False

    def run(self) -> None:
        """To be called in a process of its own, which holds the lock."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        for tries in range(1, self.retries + 2):
            self._write('running')
            code = self._once()
            if not self.ending and code != 0 and code != MISTAKE and tries <= self.retries:
                print(f'{TRIED} {code}; again, {tries} of {self.retries}', flush=True)
                until = time.monotonic() + PAUSE
                while time.monotonic() < until and not self.ending:
                    time.sleep(0.1)
                if not self.ending:
                    continue
            if self.ending:
                return self._write('stopped' if (FOLDER / 'stop').exists() else 'interrupted', code=code)
            return self._write('finished' if code == 0 else 'failed', code=code)

    def _once(self) -> int:
        environment = {**os.environ, 'PATH': f'{REPOSITORY}/.venv/bin:{os.environ.get("PATH", os.defpath)}'}
        try:
            self.child = subprocess.Popen(
                self.command, cwd=REPOSITORY, env=environment, stdin=subprocess.DEVNULL, start_new_session=True
            )
        except OSError as error:
            print(f'supervisor: {error}', flush=True)
            return MISTAKE
        self._write('running')
        if self.ending:  # the signal came before there was anything to pass it to
            self._end(signal.SIGTERM, None)
        return self.child.wait()

    def _end(self, number: int, frame) -> None:
        self.ending = True
        if self.child in (None, self.told):  # a second signal would end it at once, unsaved
            return
        self.told = self.child
        if self.child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGTERM)

    def _write(self, state: str, **more) -> None:
        child = self.child.pid if self.child else None
        record = {'state': state, 'command': self.command, 'child': child, **more}
        partial = FOLDER / 'state.json.partial'
        partial.write_text(json.dumps(record))
        os.replace(partial, FOLDER / 'state.json')


def start(command: list[str], retries: int) -> int:
    """Puts the command under way in a session of its own; leaves one that runs already as it is."""
    FOLDER.mkdir(exist_ok=True)
    lock = _lock(patience=0.5)  # `state` holds it for a moment too
    if lock is None:
        print('already running')
        return 0
    before = state()
    # A run that goes on keeps its log: also where it was stopped or has finished, for another host was interrupted.
    goes_on = before['state'] not in ('absent', 'failed') and before['command'] == command
    for name in ('stop', 'state.json', *([] if goes_on else ['log.txt'])):
        (FOLDER / name).unlink(missing_ok=True)
    (REPOSITORY / 'runs').mkdir(exist_ok=True)
    ready, tell = os.pipe()
    if os.fork():
        os.close(tell)
        os.close(lock)  # the child has it
        return 0 if os.read(ready, 1) else 1
    os.setsid()  # away from the terminal and the session of ssh
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    log = os.open(FOLDER / 'log.txt', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    (FOLDER / 'pid').write_text(str(os.getpid()))
    supervisor = Supervisor(command, retries)
    supervisor._write('running')
    os.write(tell, b'1')
    os.close(tell)
    os.close(ready)
    supervisor.run()
    os._exit(0)


def state() -> dict:
    """What state.json says, put right where its process has gone."""
    record = {'state': 'absent'}
    with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
        record = json.loads((FOLDER / 'state.json').read_text())
    if record['state'] == 'running' and _free():
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            record = json.loads((FOLDER / 'state.json').read_text())  # it may have ended between the two readings
        if record['state'] == 'running':
            record['state'] = 'interrupted'
    record['host'] = socket.gethostname()
    if record['state'] == 'failed':
        with contextlib.suppress(FileNotFoundError):
            record['log'] = (FOLDER / 'log.txt').read_bytes()[-2000:].decode(errors='replace').splitlines()[-15:]
    return record


def stop() -> int:
    """Ends the command and waits until it has; 1 if it does not."""
    if not FOLDER.exists() or _free():
        return 0
    (FOLDER / 'stop').touch()
    with contextlib.suppress(ProcessLookupError):  # it ends just now
        os.kill(int((FOLDER / 'pid').read_text()), signal.SIGTERM)
    until = time.monotonic() + GRACE
    while time.monotonic() < until:
        if _free():
            return 0
        time.sleep(0.1)
    return 1


def _lock(patience: float = 0.0) -> int | None:
    lock = os.open(FOLDER / 'lock', os.O_RDWR | os.O_CREAT, 0o644)
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() >= until:
                os.close(lock)
                return None
            time.sleep(0.05)


def _free() -> bool:
    lock = _lock()
    if lock is not None:
        os.close(lock)
    return lock is not None


def main(args: list[str]) -> int:
    """The command line above."""
    action, args = args[0], args[1:]
    if action == 'state':
        print(json.dumps(state()))
        return 0
    if action == 'stop':
        return stop()
    at = args.index('--')
    retries = int(args[args.index('--retries') + 1]) if '--retries' in args[:at] else RETRIES
    return start(args[at + 1 :], retries)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
