"""Flags of launch and of its subcommands. They check themselves; what they say of a TPU slice is in slices.py."""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from experiments.launching import slices


@dataclass(frozen=True)
class Target:
    """Which TPU machine is meant."""

    name: str = ''
    """Name of the TPU machine, and of its queued resource."""
    zone: str = ''
    """Zone of Google Cloud, us-west4-a."""
    project: str = ''
    """Project of Google Cloud (empty: the one that gcloud is set to)."""
    dry_run: tyro.conf.UseCounterAction[int] = 0
    """Print the commands, as a shell takes them, and run none."""

    def __post_init__(self):
        if not re.fullmatch(r'[a-z]([-a-z0-9]{0,38}[a-z0-9])?', self.name):
            raise ValueError(f'--name {self.name!r}: use up to 40 small letters, digits and hyphens, first a letter')
        if self.project and not re.fullmatch(r'[a-z0-9][-a-z0-9.:]*', self.project):
            raise ValueError(f'--project {self.project!r}: this is no project id')
        if self.zone and not re.fullmatch(r'[a-z]+-[a-z]+\d+-[a-z]', self.zone):
            raise ValueError(f'--zone {self.zone!r}: use a zone, such as us-west4-a')
        if not self.zone and self.needs_zone:
            raise ValueError('--zone is missing: name the zone of the TPU machine, such as us-west4-a')

    @property
    def needs_zone(self) -> bool:
        """Whether there is a machine to be found in it."""
        return True


@dataclass(frozen=True)
class FetchFlags(Target):
    """Flags of fetch."""

    bucket: str = ''
    """gs://BUCKET/FOLDER that was given to launch: it holds the results then, and no machine is asked."""
    out: str = ''
    """Where results go (empty: runs/NAME)."""

    @property
    def needs_zone(self) -> bool:
        return not self.bucket

    def __post_init__(self):
        super().__post_init__()
        if self.bucket and not re.fullmatch(r'gs://[a-z0-9][-a-z0-9_.]+(/[\w.-]+)*', self.bucket, re.ASCII):
            raise ValueError(
                f'--bucket {self.bucket!r}: use a name such as gs://my-bucket or gs://my-bucket/folder '
                '(of a bucket: lower case, digits, - _ .)'
            )


@dataclass(frozen=True)
class LaunchFlags(FetchFlags):
    """Flags of launch. After -- comes the command, which runs in the copied repository on every worker.

    Subcommands, each with --name and --zone: status, logs, stop (saves and ends the run; the machine stays and costs),
    fetch (with --bucket it needs no zone), delete.
    """

    type: str = ''
    """Accelerator type: v5litepod-256, v4-32, v5p-64, v6e-16."""
    version: str = ''
    """Image of the machines (empty: the one for the type)."""
    spot: tyro.conf.UseCounterAction[int] = 0
    """Cheaper machines that may be taken away at any time; the run then goes on on new ones."""
    queued: tyro.conf.UseCounterAction[int] = 0
    """Wait in Google's queue for the machines (a queued resource)."""
    create_flag: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """A further flag for gcloud's create, --create_flag=--network=mine; may be given more than once."""
    retries: int = 5
    """How often a command that fails is tried again on its machines. A user's mistake (exit code 2) is not."""
    keep: tyro.conf.UseCounterAction[int] = 0
    """Leave the machines when the run has ended."""
    emit: Literal['', 'gke'] = ''
    """gke: print the same job as a JobSet manifest and run nothing."""

    def __post_init__(self):
        super().__post_init__()
        if not self.type:
            raise ValueError('--type is missing: name an accelerator type, such as v5litepod-16')
        if self.retries < 0:
            raise ValueError(f'--retries {self.retries}: use 0 or more')
        if wrong := [flag for flag in self.create_flag if not flag.startswith('--')]:
            raise ValueError(f'--create_flag {wrong[0]!r}: give it whole, as --create_flag=--network=mine')
        if self.bucket:
            return
        for reason, holds in (
            ('--spot: a machine that is taken away loses its disk', self.spot),
            (f'--type {self.type}: its {self.slice.hosts} hosts share no disk', self.slice.hosts > 1),
            ('--emit gke: a pod that ends loses its disk', self.emit),
        ):
            if holds:
                raise ValueError(f'{reason}; name a --bucket gs://BUCKET/FOLDER for runs/, see docs/tpu.md')

    @property
    def needs_zone(self) -> bool:
        return not self.emit

    @property
    def slice(self) -> slices.Slice:
        """What the type stands for."""
        return slices.parse(self.type)
