"""A command on TPU machines from its start to its end, through lost connections and preemptions."""

import contextlib
import json
import re
from pathlib import Path

from data.errors import UserError
from experiments.launching import remote
from experiments.launching.flags import FetchFlags, LaunchFlags
from experiments.launching.gcloud import ATTEMPTS, Broken, Gcloud
from experiments.launching.machines import Gone, Machines
from experiments.launching.repository import pack

POLL = 10
"""Seconds between two looks at a run whose log cannot be read."""
_LEFT_IN_BUCKET = '(.*/)?(checkpoints|stores)/.*'


class Job:
    """One launch. The same again takes up what it finds: machines, a running command, one that has finished."""

    def __init__(self, launch: LaunchFlags, command: list[str], gcloud: Gcloud, root: Path):
        self.launch, self.command, self.gcloud, self.root = launch, command, gcloud, root
        self.machines = Machines(gcloud, launch)
        self.printed = 0

    def run(self) -> None:
        """Runs the command to its end, fetches the results and deletes the machines.

        Raises:
          UserError: the command failed; or no machine can be had, or it cannot be reached.
        """
        while True:
            hosts = self.machines.ready()
            try:
                states = self._watch(hosts)
                break
            except Gone as gone:
                self.gcloud.log(f'the machines are {gone}: makes new ones')
                self.machines.remove()
                self.printed = 0
        kinds = {state['state'] for state in states}
        if 'stopped' in kinds:
            self.gcloud.log(f'{self.launch.name} was stopped and keeps its machines; the same command goes on')
            return
        out = fetch(self.gcloud, self.launch)
        self._fetch_log(out)
        if not self.launch.keep:
            self.machines.remove()
        if 'failed' in kinds:
            raise UserError(_failure(states, out))
        self.gcloud.log(f'finished; the results are in {out}')

    def _watch(self, hosts: int) -> list[dict]:
        """Sees to it that the command runs, and prints worker 0's log until it runs nowhere; the last states.

        Raises:
          Gone: the machines were taken away.
        """
        states = self._states(hosts)
        self._same_command(states)
        if not _all(states, 'finished'):
            if not _all(states, 'running'):
                if any(state['state'] == 'running' for state in states):  # an earlier launch broke off in its midst
                    self._call(self.gcloud.ssh(remote.stop(), 'all'))
                self._start()
            states = self._follow(hosts)
        return states

    def _follow(self, hosts: int) -> list[dict]:
        while True:
            whole = self._print_log()
            states = self._states(hosts)
            kinds = {state['state'] for state in states}
            if 'running' in kinds:
                self.gcloud.sleep(POLL)
            elif kinds == {'finished'} or kinds & {'failed', 'stopped'}:
                if not whole:
                    self._print_log()
                return states
            else:  # shut down, or taken away: the next calls will show which
                self.gcloud.log(f'the run was interrupted ({", ".join(sorted(kinds))}): starts it again')
                self.gcloud.sleep(POLL)
                self._start()

    def _print_log(self) -> bool:
        """Prints worker 0's log from where it was left until its supervisor ends; False where it broke off."""
        try:
            for line in self.gcloud.lines(self.gcloud.ssh(remote.log(self.printed + 1), worker='0')):
                print(line, flush=True)
                self.printed += 1
        except Broken:
            return False
        return True

    def _start(self) -> None:
        """Copies the repository, installs what it needs and starts the command, on all workers."""
        archive = Path('runs') / 'launch' / self.launch.name / remote.ARCHIVE
        if self.launch.dry_run:
            self.gcloud.log(f'the working tree is packed into {archive}')
        else:
            pack(self.root, archive)
        self._call(self.gcloud.scp(str(archive), f'{self.launch.name}:{remote.ARCHIVE}', 'all'))
        self._call(self.gcloud.ssh(remote.install(self.launch.bucket), 'all'))
        self._call(self.gcloud.ssh(remote.start(self.command, self.launch.retries), 'all'))

    def _states(self, hosts: int) -> list[dict]:
        """What the supervisor of each worker says.

        Raises:
          Gone: the machines were taken away.
          UserError: some worker does not answer.
        """
        for attempt in range(ATTEMPTS):
            states = []
            for line in self._call(self.gcloud.ssh(remote.state(), 'all')).splitlines():
                with contextlib.suppress(AttributeError, json.JSONDecodeError):  # gcloud's own lines
                    states.append(json.loads(re.search(r'\{.*\}', line)[0]))
            if len(states) == hosts:
                return states
            self.gcloud.log(f'{len(states)} of {hosts} workers answer')
            self.gcloud.sleep(POLL * (attempt + 1))
        raise UserError(f'{self.launch.name}: {len(states)} of {hosts} workers answer. The same command tries again')

    def _call(self, words: list[str]) -> str:
        return self.gcloud.call(words, self.machines.check).out

    def _same_command(self, states: list[dict]) -> None:
        for state in states:
            if state['state'] == 'running' and state['command'] != self.command:
                raise UserError(
                    f'--name {self.launch.name} runs another command, {" ".join(state["command"])}: '
                    'take another name, or stop it with launch stop'
                )

    def _fetch_log(self, out: Path) -> None:
        done = self.gcloud.once(self.gcloud.scp(f'{self.launch.name}:{remote.JOB}/log.txt', str(out / 'log.txt'), '0'))
        if done.code:
            self.gcloud.log(f'the log could not be fetched ({done.reason})')


def fetch(gcloud: Gcloud, flags: FetchFlags) -> Path:
    """Brings runs/ here, from the bucket without its checkpoints and stores; the folder that holds it."""
    out = Path(flags.out or f'runs/{flags.name}')
    if not flags.dry_run:
        (out / 'runs').mkdir(parents=True, exist_ok=True)
    if flags.bucket:
        exclude = f'--exclude={_LEFT_IN_BUCKET}'
        gcloud.call(['storage', 'rsync', '--recursive', exclude, flags.bucket, str(out / 'runs')])
    else:
        gcloud.call(gcloud.scp(f'{flags.name}:{remote.REPOSITORY}/runs', str(out), '0', '--recurse'))
    return out


def _all(states: list[dict], kind: str) -> bool:
    return all(state['state'] == kind for state in states)


def _failure(states: list[dict], out: Path) -> str:
    failed = next(state for state in states if state['state'] == 'failed')
    last = next((line for line in reversed(failed.get('log', [])) if line.strip()), '')
    return f'the command failed on {failed["host"]} with exit code {failed["code"]}: {last} ({out / "log.txt"})'
