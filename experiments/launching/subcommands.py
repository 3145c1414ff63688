"""What can be done to a launch from outside: look at it, read its log, stop it, fetch its results, delete it."""

import json
from collections.abc import Callable

from data.errors import UserError
from experiments.launching import remote
from experiments.launching.flags import FetchFlags, Target
from experiments.launching.gcloud import Broken, Gcloud
from experiments.launching.job import fetch
from experiments.launching.machines import delete, describe, queue_state


def status(gcloud: Gcloud) -> None:
    """Prints the machines' state, their place in the queue, and the state of the command on each worker."""
    node, queue = describe(gcloud, 'tpu-vm'), describe(gcloud, 'queued-resources')
    if queue is not None:
        gcloud.tell(f'queued resource {gcloud.target.name}: {queue_state(queue)}')
    if node is None:
        gcloud.tell(f'machines {gcloud.target.name}: none')
        return
    gcloud.tell(f'machines {gcloud.target.name}: {node["state"]}, {len(node.get("networkEndpoints", []))} hosts')
    if node['state'] == 'READY':
        gcloud.tell(gcloud.call(gcloud.ssh(remote.state(), 'all')).out.rstrip('\n'))


def logs(gcloud: Gcloud) -> None:
    """Prints worker 0's log, and goes on as long as the command runs."""
    _must_exist(gcloud)
    try:
        for line in gcloud.lines(gcloud.ssh(remote.log(1), '0')):
            gcloud.tell(line)
    except Broken:
        raise UserError(f'the connection to {gcloud.target.name} was lost: give the same command again') from None


def stop(gcloud: Gcloud) -> None:
    """Asks the command to save and end, on all workers; the machines stay."""
    _must_exist(gcloud)
    gcloud.call(gcloud.ssh(remote.stop(), 'all'))
    gcloud.tell(f'{gcloud.target.name} has stopped; its machines stay, and cost, until launch delete')


def bring(gcloud: Gcloud) -> None:
    """Fetches the results."""
    if not gcloud.target.bucket:
        _must_exist(gcloud)
    gcloud.tell(str(fetch(gcloud, gcloud.target)))


def remove(gcloud: Gcloud) -> None:
    """Deletes the machines and the queued resource."""
    gcloud.tell(f'{gcloud.target.name}: {"deleted" if delete(gcloud) else "there is nothing to delete"}')


ACTIONS: dict[str, tuple[type[Target], Callable[[Gcloud], None]]] = {
    'status': (Target, status),
    'logs': (Target, logs),
    'stop': (Target, stop),
    'fetch': (FetchFlags, bring),
    'delete': (Target, remove),
}
"""Name of a subcommand -> its flags and what it does."""


def _must_exist(gcloud: Gcloud) -> None:
    node = describe(gcloud, 'tpu-vm')
    if node is None:
        raise UserError(f'--name {gcloud.target.name}: there is no such TPU machine in --zone {gcloud.target.zone}')
    if node['state'] != 'READY':
        raise UserError(f'--name {gcloud.target.name}: its machines are {json.dumps(node["state"])}, not READY')
