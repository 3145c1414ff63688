"""Runs a command on Cloud TPU machines: `python -m experiments.launch --name N --type T --zone Z -- COMMAND`."""

import sys
from pathlib import Path

from experiments import cli
from experiments.launching.flags import LaunchFlags
from experiments.launching.gcloud import Gcloud, Rehearsal
from experiments.launching.job import Job
from experiments.launching.jobset import manifest
from experiments.launching.subcommands import ACTIONS

PROG = 'python -m experiments.launch'
ROOT = Path(__file__).parents[1]


def main(args: list[str]) -> None:
    """Runs the command line: a launch, or a subcommand on one."""
    at = args.index('--') if '--' in args else len(args)
    words, command = args[:at], args[at + 1 :]
    action = words[0] if words and not words[0].startswith('-') else ''
    if action and action not in ACTIONS:
        raise cli.UserError(f'{action} is no subcommand: use {", ".join(ACTIONS)}, or none to launch')
    if action and command:
        raise cli.UserError(f'{action} takes no command: leave out -- and what follows it')
    if action:
        flags_of, act = ACTIONS[action]
        flags = cli.parse(flags_of, words[1:], None, f'{PROG} {action}', act.__doc__)
        return act(Rehearsal(flags, there=['tpu-vm']) if flags.dry_run else Gcloud(flags, log=_say))
    flags = cli.parse(LaunchFlags, words, None, PROG, __doc__)
    if not command or not command[0].strip():
        raise cli.UserError(f'the command is missing: {PROG} ... -- python -m experiments.ablate CONFIG ...')
    if flags.emit:
        return print(manifest(flags, command), end='')
    gcloud = Rehearsal(flags, flags.slice.hosts, log=_comment) if flags.dry_run else Gcloud(flags, log=_say)
    try:
        Job(flags, command, gcloud, ROOT).run()
    except KeyboardInterrupt:
        _say(f'left {flags.name} as it is: a command that runs goes on, and the same launch takes it up again')
        raise


def _say(text: str) -> None:
    print(f'launch: {text}', file=sys.stderr, flush=True)


def _comment(text: str) -> None:
    print(f'# {text}', flush=True)


if __name__ == '__main__':
    cli.run(main)
