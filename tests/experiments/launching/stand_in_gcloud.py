"""A gcloud for tests: keeps machines as folders below $CLOUD, records every call in calls.jsonl and fails on cue.

A worker's folder is its home: ssh runs commands there with bash, as sshd would, and scp copies files. (gcloud splits a
command at spaces, and ssh joins the words with spaces, so that the remote shell is given what gcloud was.) cues.json is
a list of {match, times, code, err, do}: a call that the pattern is found in fails so many times with that code and
message; with do = "lose the answer" it does its work and then fails; with do = "preempt" it is an ssh that runs until
worker 0 has logged three lines and then loses its machines.
"""

import contextlib
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

CLOUD = Path(os.environ['CLOUD'])
# What gcloud 528 takes, of what we use. `--help` of each command has the whole list.
FLAGS = {
    'tpu-vm create': {'zone', 'accelerator-type', 'version', 'spot', 'network'},
    'tpu-vm describe': {'zone', 'format'},
    'tpu-vm delete': {'zone', 'quiet'},
    'tpu-vm ssh': {'zone', 'worker', 'command', 'ssh-flag'},
    'tpu-vm scp': {'zone', 'worker', 'recurse'},
    'queued-resources create': {'zone', 'node-id', 'accelerator-type', 'runtime-version', 'spot', 'network'},
    'queued-resources describe': {'zone', 'format'},
    'queued-resources delete': {'zone', 'force', 'quiet'},
    'storage rsync': {'recursive', 'exclude'},
    'storage cp': set(),
}
HOSTS = {'v5litepod-8': 1, 'v5litepod-16': 2}  # two stand for four, to be quick


def fail(message: str, code: int = 1):
    print(f'ERROR: (gcloud) {message}', file=sys.stderr)
    sys.exit(code)


def worker(name: str, number: int) -> Path:
    return CLOUD / 'machines' / name / str(number)


def read(kind: str, name: str) -> dict:
    path = CLOUD / kind / f'{name}.json'
    if not path.exists():
        fail(f"NOT_FOUND: Resource 'projects/p/locations/z/{kind}/{name}' was not found")
    return json.loads(path.read_text())


def write(kind: str, name: str, record: dict) -> None:
    (CLOUD / kind).mkdir(parents=True, exist_ok=True)
    (CLOUD / kind / f'{name}.json').write_text(json.dumps(record))


def cue(line: str) -> dict | None:
    with open(CLOUD / 'cues.json', 'r+') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        cues = json.load(file)
        found = next((cue for cue in cues if cue.get('times', 1) > 0 and re.search(cue['match'], line)), None)
        if found:
            found['times'] = found.get('times', 1) - 1
            file.seek(0)
            file.truncate()
            json.dump(cues, file)
        return found


def environment(home: Path) -> dict:
    path = f'{CLOUD}/bin:{os.environ["PATH"]}'
    return {
        'HOME': str(home), 'PATH': path, 'CLOUD': str(CLOUD), 'CLOZE_SUPERVISOR_PAUSE': '0.1', 'LANG': 'C.UTF-8',
        'PYTHONPATH': f'{CLOUD}/bin',  # sitecustomize.py there gives each worker a host name of its own
    }  # fmt: skip


def shell(name: str, number: int, command: str) -> subprocess.Popen:
    home = worker(name, number)
    return subprocess.Popen(['bash', '-c', command], cwd=home, env=environment(home), stdin=subprocess.DEVNULL)


def lose(name: str, state: str = 'PREEMPTED') -> None:
    """Ends what runs on the machines, and their disks."""
    for home in (CLOUD / 'machines' / name).iterdir():
        job = home / 'cloze-job'
        if (job / 'pid').exists():
            child = json.loads((job / 'state.json').read_text())['child']
            for process, kill in ((int((job / 'pid').read_text()), os.kill), (child, os.killpg)):
                with contextlib.suppress(ProcessLookupError, TypeError):
                    kill(process, signal.SIGKILL)
    for _ in range(100):  # a process that is dying may still write
        shutil.rmtree(CLOUD / 'machines' / name, ignore_errors=True)
        if not (CLOUD / 'machines' / name).exists():
            break
        time.sleep(0.01)
    if (CLOUD / 'tpu-vm' / f'{name}.json').exists():
        write('tpu-vm', name, {**read('tpu-vm', name), 'state': state})
    if (CLOUD / 'queued-resources' / f'{name}.json').exists():
        write('queued-resources', name, {'state': {'state': 'SUSPENDED'}})


def preempted_while_running(name: str, process: subprocess.Popen):
    log = worker(name, 0) / 'cloze-job' / 'log.txt'
    until = time.monotonic() + 20
    while log.read_text().count('\n') < 3 and time.monotonic() < until:
        time.sleep(0.02)
    process.kill()
    lose(name)
    sys.exit(255)


def make(name: str, accelerator_type: str) -> None:
    hosts = HOSTS[accelerator_type]
    for number in range(hosts):
        worker(name, number).mkdir(parents=True)
    write('tpu-vm', name, {'state': 'READY', 'networkEndpoints': [{'ipAddress': str(n)} for n in range(hosts)]})


def main() -> None:
    args = sys.argv[1:]
    with open(CLOUD / 'calls.jsonl', 'a') as file:
        file.write(json.dumps(args) + '\n')
    words = args[2:] if args[:2] == ['compute', 'tpus'] else args
    verb = ' '.join(words[:2])
    # A string that begins with -- but is no flag could come from nowhere but a hole in the quoting.
    flags = dict(word[2:].partition('=')[::2] for word in words[2:] if word.startswith('--') and word != '--')
    plain = [word for word in words[2:] if not word.startswith('--')]
    if unknown := flags.keys() - FLAGS[verb] - {'project'}:
        fail(f'unrecognized arguments: --{unknown.pop()}', 2)
    cued = cue(shlex.join(args))
    if cued and 'do' not in cued:
        fail(cued['err'], cued.get('code', 1))
    name = plain[0]

    if verb == 'tpu-vm create':
        if (CLOUD / 'tpu-vm' / f'{name}.json').exists():
            fail('ALREADY_EXISTS')
        make(name, flags['accelerator-type'])
    elif verb == 'queued-resources create':
        if (CLOUD / 'queued-resources' / f'{name}.json').exists():
            fail('ALREADY_EXISTS')
        states = ['WAITING_FOR_RESOURCES', 'PROVISIONING', 'ACTIVE']
        write('queued-resources', name, {'type': flags['accelerator-type'], 'ahead': states, 'state': {}})
    elif verb == 'queued-resources describe':
        record = read('queued-resources', name)
        if record.get('ahead'):
            record['state'] = {'state': record['ahead'].pop(0)}
            if record['state']['state'] == 'ACTIVE':
                make(name, record['type'])
            write('queued-resources', name, record)
        print(json.dumps(record))
    elif verb == 'tpu-vm describe':
        print(json.dumps(read('tpu-vm', name)))
    elif verb.endswith(' delete'):
        read(words[0], name)
        if (CLOUD / 'machines' / name).exists():
            lose(name)
        for kind in {words[0], 'tpu-vm'}:
            (CLOUD / kind / f'{name}.json').unlink(missing_ok=True)
    elif verb == 'tpu-vm ssh':
        record = read('tpu-vm', name)
        if record['state'] != 'READY':
            fail(f'this operation is not supported in state {record["state"]}')
        numbers = range(len(record['networkEndpoints'])) if flags['worker'] == 'all' else [int(flags['worker'])]
        processes = [shell(name, number, flags['command']) for number in numbers]
        if cued and cued['do'] == 'preempt':
            preempted_while_running(name, processes[0])
        if code := max(process.wait() for process in processes):
            sys.exit(code)
    elif verb == 'tpu-vm scp':
        source, target = plain
        there = target if ':' in target else source
        name, path = there.split(':')
        record = read('tpu-vm', name)
        if record['state'] != 'READY':
            fail(f'this operation is not supported in state {record["state"]}')
        numbers = range(len(record['networkEndpoints'])) if flags['worker'] == 'all' else [int(flags['worker'])]
        for number in numbers:
            pair = [source, worker(name, number) / path] if there == target else [worker(name, number) / path, target]
            subprocess.run(['cp', *(['-rL'] if 'recurse' in flags else []), *map(str, pair)], check=True)
    elif verb == 'storage cp':
        target = CLOUD / 'buckets' / plain[1].removeprefix('gs://')
        target.parent.mkdir(parents=True)
        target.write_bytes(sys.stdin.buffer.read())
    elif verb == 'storage rsync':
        source = CLOUD / 'buckets' / plain[0].removeprefix('gs://')
        for path in source.rglob('*'):
            name = str(path.relative_to(source))
            if path.is_file() and not re.match(flags['exclude'], name):
                (Path(plain[1]) / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, Path(plain[1]) / name)
    if cued:
        fail(cued['err'], cued.get('code', 1))


if __name__ == '__main__':
    main()
