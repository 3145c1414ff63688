"""Calls of gcloud: run, recorded, tried again where that may help, or only printed."""

import json
import shlex
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from data.errors import UserError
from experiments.launching import remote
from experiments.launching.flags import Target

ATTEMPTS = 8
"""Tries of a call that may fail by chance: ssh to a machine just made, a busy API."""
_MISTAKES = (
    'active account', 'auth login', 'PERMISSION_DENIED', 'INVALID_ARGUMENT', 'unrecognized arguments', 'not enabled',
    'SERVICE_DISABLED', 'Invalid value', 'argument --', 'required property',
    'not properly specified',
)  # fmt: skip


@dataclass(frozen=True)
class Done:
    """A call that has ended."""

    code: int
    out: str
    err: str

    @property
    def reason(self) -> str:
        """The last thing that gcloud said of an error, as one line."""
        lines = [line.strip() for line in self.err.splitlines() if line.strip()]
        said = [n for n, line in enumerate(lines) if line.startswith('ERROR:')]
        return ' '.join(lines[said[-1] :] if said else lines[-1:])[:600] or f'exit code {self.code}'

    @property
    def missing(self) -> bool:
        """Whether the thing asked for is not there."""
        return self.code != 0 and ('NOT_FOUND' in self.err or 'not found' in self.err)


class Broken(Exception):
    """A connection was lost."""


class Gcloud:
    """gcloud for one target."""

    def __init__(self, target: Target, sleep: Callable[[float], None] = time.sleep, log: Callable[[str], None] = print):
        self.target, self.sleep, self.log = target, sleep, log

    def once(self, words: list[str]) -> Done:
        """One call, whatever comes of it.

        Raises:
          UserError: there is no gcloud here.
        """
        try:
            done = subprocess.run(
                self._whole(words), capture_output=True, text=True, errors='replace', stdin=subprocess.DEVNULL
            )
        except FileNotFoundError:
            raise _no_gcloud() from None
        return Done(done.returncode, done.stdout, done.stderr)

    def call(self, words: list[str], worth_it: Callable[[Done], None] = lambda done: None) -> Done:
        """A call that must succeed, tried again with growing pauses.

        Args:
          worth_it: is shown each failure, and raises where another try is of no use.

        Raises:
          UserError: it still fails, or gcloud was told something wrong.
        """
        for attempt in range(1, ATTEMPTS + 1):
            done = self.once(words)
            if done.code == 0:
                return done
            worth_it(done)
            if any(sign in done.err for sign in _MISTAKES):
                break
            if attempt < ATTEMPTS:
                self.log(f'gcloud {_name(words)} failed ({done.reason}); again, {attempt} of {ATTEMPTS - 1}')
                self.sleep(min(160, 10 * 2 ** (attempt - 1)))
        raise UserError(f'gcloud {_name(words)}: {done.reason}')

    def lines(self, words: list[str]) -> Iterator[str]:
        """The lines that a long call prints, as they come.

        Raises:
          Broken: the call did not end well, so there may be more lines.
          UserError: there is no gcloud here.
        """
        try:
            process = subprocess.Popen(
                self._whole(words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                text=True, errors='replace',
            )  # fmt: skip
        except FileNotFoundError:
            raise _no_gcloud() from None
        try:
            for line in process.stdout:
                yield line.rstrip('\n')
            if process.wait():
                raise Broken
        finally:
            process.terminate()
            process.wait()

    def _whole(self, words: list[str]) -> list[str]:
        project = [f'--project={self.target.project}'] if self.target.project else []
        return ['gcloud', *words, *project]

    def tell(self, text: str) -> None:
        """Prints what came of a subcommand."""
        print(text, flush=True)

    # The calls themselves.

    def tpu(self, kind: str, verb: str, *flags: str) -> list[str]:
        """gcloud compute tpus KIND VERB NAME --zone=ZONE ..."""
        return ['compute', 'tpus', kind, verb, self.target.name, f'--zone={self.target.zone}', *flags]

    def ssh(self, command: str, worker: str) -> list[str]:
        """A command on a worker, or on all. A connection that has died is noticed within two minutes."""
        alive = ('--ssh-flag=-oServerAliveInterval=30', '--ssh-flag=-oServerAliveCountMax=4')
        return self.tpu('tpu-vm', 'ssh', f'--worker={worker}', *alive, f'--command={command}')

    def scp(self, source: str, target: str, worker: str, *flags: str) -> list[str]:
        """Copies to or from a worker; a path on it is NAME:PATH."""
        zone = f'--zone={self.target.zone}'
        return ['compute', 'tpus', 'tpu-vm', 'scp', *flags, source, target, zone, f'--worker={worker}']


class Rehearsal(Gcloud):
    """Prints each call, as a shell takes it, and answers as if all went well.

    `there`: which of tpu-vm and queued-resources there are before.
    """

    def __init__(self, target: Target, hosts: int = 1, there: Iterable[str] = (), log: Callable[[str], None] = print):
        super().__init__(target, lambda seconds: None, log)
        self.hosts, self.there, self.asked = hosts, set(there), 0

    def once(self, words: list[str]) -> Done:
        print(shlex.join(self._whole(words)), flush=True)
        kind, verb = words[2:4] if words[0] == 'compute' else ('', '')
        if verb == 'create':
            self.there |= {kind, 'tpu-vm'}
        if verb == 'describe' and kind not in self.there:
            return Done(1, '', 'NOT_FOUND')
        if verb == 'describe':
            ready = 'READY' if kind == 'tpu-vm' else {'state': 'ACTIVE'}
            return Done(0, json.dumps({'state': ready, 'networkEndpoints': [{}] * self.hosts}), '')
        if words[-1] == f'--command={remote.state()}':
            self.asked += 1
            return Done(0, f'{{"state": "{"absent" if self.asked == 1 else "finished"}"}}\n' * self.hosts, '')
        return Done(0, '{}', '')

    def tell(self, text: str) -> None:
        """Nothing came of it."""

    def lines(self, words: list[str]) -> Iterator[str]:
        print(shlex.join(self._whole(words)), flush=True)
        return iter(())


def _name(words: list[str]) -> str:
    return ' '.join(words[2:4] if words[0] == 'compute' else words[:2])


def _no_gcloud() -> UserError:
    return UserError('gcloud is not installed: see https://cloud.google.com/sdk/docs/install')
