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
from experiments.launching.supervisor import TRIED

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
        failed = [state for state in states if state['state'] == 'failed']
        if not failed and any(state['state'] == 'stopped' for state in states):
            self.gcloud.log(f'{self.launch.name} was stopped and keeps its machines; the same command goes on')
            return
        self._keep_logs()
        out = fetch(self.gcloud, self.launch)
        if not self.launch.keep:
            self.machines.remove()
        if failed:
            raise UserError(self._failure(failed, out))
        self.gcloud.log(f'finished; the results are in {out}')

    def _watch(self, hosts: int) -> list[dict]:
        """Sees to it that the command runs, and prints worker 0's log until it runs nowhere; the last states.

        Raises:
          Gone: the machines were taken away.
        """
        states = self._states(hosts)
        self._same_command(states)
        if not self._all(states, 'finished'):
            if not self._all(states, 'running'):
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
            if 'running' in kinds and kinds & {'failed', 'interrupted'}:
                self.gcloud.log(f'some hosts have ended ({", ".join(sorted(kinds))}): stops those that wait for them')
                self.gcloud.sleep(POLL)  # some may be about to end by themselves, and to say why
                self._call(self.gcloud.ssh(remote.stop(), 'all'))
                if 'failed' not in kinds:
                    self._start()
            elif 'running' in kinds:
                self.gcloud.sleep(POLL)
            elif kinds == {'finished'} or kinds & {'failed', 'stopped'}:
                if not whole:
                    self._print_log(through=True)
                return states
            else:  # shut down, or taken away: the next calls will show which
                self.gcloud.log(f'the run was interrupted ({", ".join(sorted(kinds))}): starts it again')
                self.gcloud.sleep(POLL)
                self._start()

    def _print_log(self, through: bool = False) -> bool:
        """Prints worker 0's log from where it was left until its supervisor ends; False where it broke off.

        Unless it is to go `through`, it also breaks off where a try has failed: another host may have ended for good.
        """
        try:
            for line in self.gcloud.lines(self.gcloud.ssh(remote.log(self.printed + 1), worker='0')):
                print(line, flush=True)
                self.printed += 1
                if line.startswith(TRIED) and not through:
                    return False
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

    def _all(self, states: list[dict], kind: str) -> bool:
        return all(state['state'] == kind and state['command'] == self.command for state in states)

    def _keep_logs(self) -> None:
        done = self.gcloud.once(self.gcloud.ssh(remote.keep_log(self.launch.name), 'all'))
        if done.code:
            self.gcloud.log(f'the logs could not be kept ({done.reason})')

    def _failure(self, failed: list[dict], out: Path) -> str:
        # A mistake (2) and an error (1) say more than the signals (below 0) by which hosts end that were left alone.
        first = max(failed, key=lambda state: state['code'])
        last = next((line for line in reversed(first.get('log', [])) if line.strip()), '')
        log = out / remote.kept_log(self.launch.name, first['host'])
        return f'the command failed on {first["host"]} with exit code {first["code"]}: {last} ({log})'


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
