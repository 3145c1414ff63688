"""How a command learns that it is one of several processes, and what it says where that was stated by halves."""

import socket

import jax
import pytest

from data.errors import UserError
from experiments import processes

WHOLE = {'JAX_COORDINATOR_ADDRESS': '10.0.0.2:8476', 'JAX_NUM_PROCESSES': '4', 'JAX_PROCESS_ID': '3'}


@pytest.fixture
def initialized(monkeypatch):
    """What jax.distributed.initialize is called with, in place of calling it."""
    calls = []
    for name in WHOLE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(jax.config, 'update', lambda *_: None)
    monkeypatch.setattr(jax.distributed, 'initialize', lambda **given: calls.append(given))
    monkeypatch.setattr(processes.sys, 'excepthook', processes.sys.excepthook)  # put back afterwards
    return calls


def state(monkeypatch, **changes):
    for name, value in {**WHOLE, **changes}.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)


def test_one_process_on_cpus_joins_nothing(initialized):
    processes.join()
    assert initialized == []


@pytest.fixture
def first():
    """Where the first process listens."""
    with socket.create_server(('localhost', 0)) as server:
        yield f'localhost:{server.getsockname()[1]}'


def test_three_variables_say_which_process_it_is(initialized, monkeypatch, first, capsys):
    state(monkeypatch, JAX_COORDINATOR_ADDRESS=first)
    processes.join()
    (given,) = initialized
    assert (given['coordinator_address'], given['num_processes'], given['process_id']) == (first, 4, 3)
    assert capsys.readouterr().err == f'waiting for the 4 processes of this run at {first}\n'
    assert processes.sys.excepthook is processes._end_at_once


@pytest.mark.parametrize(
    ('changes', 'says'),
    [
        ({'JAX_PROCESS_ID': None}, 'JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES is set and JAX_PROCESS_ID is not'),
        ({'JAX_COORDINATOR_ADDRESS': 'host'}, 'JAX_COORDINATOR_ADDRESS host: give the first process as HOST:PORT'),
        ({'JAX_COORDINATOR_ADDRESS': 'host:99999'}, 'host:99999: give the first process as HOST:PORT'),
        ({'JAX_NUM_PROCESSES': 'four'}, 'JAX_NUM_PROCESSES four'),
        ({'JAX_PROCESS_ID': '4'}, 'JAX_PROCESS_ID 4'),
    ],
)
def test_what_is_stated_by_halves_is_named(initialized, monkeypatch, changes, says):
    state(monkeypatch, **changes)
    with pytest.raises(UserError, match=says):
        processes.join()
    assert initialized == []


def test_an_address_that_cannot_be_the_first_process_is_named(initialized, monkeypatch, first):
    """At the one gRPC would end the process with a segmentation fault, at the other after minutes of silence."""
    state(monkeypatch, JAX_COORDINATOR_ADDRESS=first, JAX_PROCESS_ID='0')
    with pytest.raises(UserError, match='cannot listen there .*: give all of them another port'):
        processes.join()
    monkeypatch.setattr(processes, 'PATIENCE', 0)
    state(monkeypatch, JAX_COORDINATOR_ADDRESS='localhost:1')
    with pytest.raises(UserError, match=r'localhost:1: nobody listens there .*: start the first process'):
        processes.join()
    assert initialized == []


def test_a_command_for_one_host_refuses_several(initialized, monkeypatch):
    processes.alone('finetune')
    monkeypatch.setattr(jax, 'process_count', lambda: 4)
    with pytest.raises(UserError, match='finetune runs on one host, and these are 4'):
        processes.alone('finetune')
