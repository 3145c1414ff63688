"""The TPU machines of a launch: made, waited for, made again after a preemption, deleted."""

import contextlib
import json

from data.errors import UserError
from experiments.launching.flags import LaunchFlags
from experiments.launching.gcloud import Done, Gcloud

POLL = 30
"""Seconds between two looks at a machine that is not ready."""
FULL = 60
"""Seconds between two tries where a zone has no machine left."""
_GONE = ('PREEMPTED', 'TERMINATED', 'DELETING', 'HIDING', 'HIDDEN')
_QUEUE_GONE = ('SUSPENDED', 'FAILED')


class Gone(Exception):
    """The machines were taken away."""


class _Missing(Exception):
    """gcloud knows no such thing."""


class _Exists(Exception):
    """There is one of that name already."""


class _Full(Exception):
    """The zone has no such machine left at present."""


def describe(gcloud: Gcloud, kind: str) -> dict | None:
    """What gcloud says of a tpu-vm or of queued-resources; None where there is none of that name."""

    def worth_it(done: Done) -> None:
        if done.missing:
            raise _Missing

    try:
        return json.loads(gcloud.call(gcloud.tpu(kind, 'describe', '--format=json'), worth_it).out)
    except _Missing:
        return None


def queue_state(queue: dict | None) -> str:
    """State of a queued resource; empty where there is none."""
    return queue['state']['state'] if queue else ''


def delete(gcloud: Gcloud) -> bool:
    """Deletes the machines and the queued resource that holds them; False where there was neither."""
    queued = describe(gcloud, 'queued-resources') is not None
    if not queued and describe(gcloud, 'tpu-vm') is None:
        return False
    words = (
        gcloud.tpu('queued-resources', 'delete', '--force', '--quiet')
        if queued
        else gcloud.tpu('tpu-vm', 'delete', '--quiet')
    )

    def worth_it(done: Done) -> None:
        if done.missing:
            raise _Missing

    with contextlib.suppress(_Missing):  # it went by itself meanwhile
        gcloud.call(words, worth_it)
    return True


class Machines:
    """What one launch rents."""

    def __init__(self, gcloud: Gcloud, launch: LaunchFlags):
        self.gcloud, self.launch = gcloud, launch

    def ready(self) -> int:
        """Makes the machines if need be and waits for them; how many hosts they are.

        Raises:
          UserError: the project may not have them, or gcloud was told something wrong.
        """
        said = ''
        while True:
            # The queue first: machines that it has given are there when it says so, not the other way round.
            queue = describe(self.gcloud, 'queued-resources') if self.launch.queued else None
            node = describe(self.gcloud, 'tpu-vm')
            state, waiting = (node or {}).get('state', ''), queue_state(queue)
            if state == 'READY':
                return len(node['networkEndpoints'])
            if state == 'STOPPED':
                raise UserError(f'{self.launch.name} is stopped: start it with gcloud, or delete it with launch delete')
            if state in _GONE or waiting in _QUEUE_GONE or (waiting == 'ACTIVE' and node is None):
                self.remove()
                if reason := _failure(queue):
                    self.gcloud.log(f'the queued resource failed: {reason}')
                    with contextlib.suppress(_Exists, _Full):  # another try may do
                        self._judge(Done(1, '', reason))
                    self.gcloud.sleep(FULL)
            elif node is None and queue is None:
                self._create()
            else:
                if said != (said := waiting or state):
                    self.gcloud.log(f'{self.launch.name} is {said}: waiting')
                self.gcloud.sleep(POLL)

    def check(self, done: Done) -> None:
        """To be shown a failed call to the machines.

        Raises:
          Gone: it failed because they are no longer there.
        """
        node = describe(self.gcloud, 'tpu-vm')
        if node is None or node['state'] in _GONE:
            raise Gone('missing' if node is None else node['state'])

    def remove(self) -> None:
        """Deletes the machines, and what else there is of them."""
        self.gcloud.log(f'deletes {self.launch.name}')
        delete(self.gcloud)

    def _create(self) -> None:
        launch = self.launch
        version = launch.version or launch.slice.generation.runtime
        spot = ['--spot'] if launch.spot else []
        flags = [f'--accelerator-type={launch.type}', *spot, *launch.create_flag]
        if launch.queued:
            flags = [f'--node-id={launch.name}', f'--runtime-version={version}', *flags]
            words = self.gcloud.tpu('queued-resources', 'create', *flags)
        else:
            words = self.gcloud.tpu('tpu-vm', 'create', f'--version={version}', *flags)
        try:
            self.gcloud.log(
                f'makes {launch.name}: {launch.type}, hosts: {launch.slice.hosts} '
                f'(to experiments.plan it is --topology {launch.slice.topology})'
            )
            self.gcloud.call(words, self._judge)
        except _Exists:  # an earlier try made it, and its answer was lost
            self.gcloud.log(f'{launch.name} exists already')
            self.gcloud.sleep(POLL)
        except _Full as full:
            self.gcloud.log(f'{full}; again in {FULL} s (--queued waits in line instead)')
            if describe(self.gcloud, 'tpu-vm') is not None:  # a create that failed can leave its shell behind
                self.remove()
            self.gcloud.sleep(FULL)

    def _judge(self, done: Done) -> None:
        """Whether a failed create is worth another try."""
        said = done.err.lower()
        if 'already exists' in said or 'already_exists' in said:
            raise _Exists
        if 'quota' in said and 'per minute' not in said:
            raise UserError(
                f'--type {self.launch.type} is beyond the quota in --zone {self.launch.zone}: ask for more at '
                f'https://console.cloud.google.com/iam-admin/quotas or take another zone or type ({done.reason})'
            )
        if 'no more capacity' in said or 'resource_exhausted' in said or 'stockout' in said:
            raise _Full(f'no {self.launch.type} is free in {self.launch.zone}')


def _failure(queue: dict | None) -> str:
    """Why a queued resource failed."""
    if queue_state(queue) != 'FAILED':
        return ''
    return queue['state'].get('failedData', {}).get('error', {}).get('message', 'no reason was given')
