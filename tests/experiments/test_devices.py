"""What is said to XLA before it starts."""

import os

import pytest

from data.errors import UserError
from experiments.devices import QUICK, prepare
from train.config import RunConfig


@pytest.fixture
def flags(monkeypatch):
    """XLA's flags once a command has said how it runs, in an environment that has some already."""

    def of(run: RunConfig, replicas: int) -> list[str]:
        for name, value in (('XLA_FLAGS', before), ('TF_CPP_MIN_LOG_LEVEL', '2')):
            monkeypatch.setenv(name, value)
        prepare(run, replicas)
        prepare(run, replicas)  # again, as in a process that runs two commands
        return os.environ['XLA_FLAGS'].split()

    before = '--xla_dump_to=here --xla_force_host_platform_device_count=7'
    return of


def test_flags_of_the_user_stay_and_no_flag_is_said_twice(flags):
    said = flags(RunConfig(devices=3, compilation_cache=''), 1)
    assert said[0] == '--xla_dump_to=here' and len(set(said)) == len(said)
    assert [flag for flag in said if 'device_count' in flag] == ['--xla_force_host_platform_device_count=3']
    assert not set(QUICK) & set(said)


def test_quick_compilation_is_asked_for(flags):
    assert set(QUICK) <= set(flags(RunConfig(devices=1, quick_compile=True, compilation_cache=''), 1))


def test_a_cache_that_is_a_file_is_refused(flags, tmp_path):
    (tmp_path / 'cache').touch()
    with pytest.raises(UserError, match='--run.compilation_cache .*cache is a file: name a folder'):
        flags(RunConfig(compilation_cache=str(tmp_path / 'cache')), 1)
