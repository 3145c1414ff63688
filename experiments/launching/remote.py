"""What a worker's shell is told. Relative paths begin in the home folder; gcloud hands the text on unchanged."""

import shlex

REPOSITORY = 'cloze'
ARCHIVE = 'cloze.tar.gz'
JOB = 'cloze-job'
_SUPERVISOR = f'{REPOSITORY}/experiments/launching/supervisor.py'


def install(bucket: str) -> str:
    """Unpacks the repository, in place of an older copy, and makes it ready to run."""
    setup = [
        'bash',
        f'{REPOSITORY}/experiments/launching/setup.sh',
        *([bucket.removeprefix('gs://')] if bucket else []),
    ]
    return (
        f'mkdir -p {REPOSITORY} && '
        f'find {REPOSITORY} -mindepth 1 -maxdepth 1 ! -name .venv ! -name runs -exec rm -rf {{}} + && '
        f'tar -xzf {ARCHIVE} -C {REPOSITORY} && {shlex.join(setup)}'
    )


def start(command: list[str], retries: int) -> str:
    """Puts the command under its supervisor; a command that runs already is left alone."""
    return shlex.join(['python3', _SUPERVISOR, 'start', '--retries', str(retries), '--', *command])


def state() -> str:
    """Prints the supervisor's state as a line of JSON, where there is one."""
    return f'if test -e {_SUPERVISOR}; then python3 {_SUPERVISOR} state; else echo \'{{"state": "absent"}}\'; fi'


def stop() -> str:
    """Ends the command, once it has saved."""
    return f'if test -e {_SUPERVISOR}; then python3 {_SUPERVISOR} stop; fi'


def keep_log(name: str) -> str:
    """Copies the log into runs/, where results are fetched from; see `kept_log`."""
    kept = kept_log(name, '"$(hostname)"')
    return f'mkdir -p {REPOSITORY}/runs/launch && cp {JOB}/log.txt {REPOSITORY}/{kept}'


def kept_log(name: str, host: str) -> str:
    """Where `keep_log` puts the log of a host, by the name that the host has in its state."""
    return f'runs/launch/{name}-{host}.txt'


def log(first: int) -> str:
    """Prints the log from a line on, until the supervisor has gone."""
    return f'tail -n +{first} -s 0.3 -f --pid="$(cat {JOB}/pid)" {JOB}/log.txt'
