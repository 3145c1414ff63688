import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from train.preemption import Preemption

ROOT = Path(__file__).parents[2]

# Stays in C for about `seconds`, away from Python's bytecodes, as a compilation does.
IN_C = """
import hashlib, sys, time
from train import preemption
from train.preemption import Preemption

preemption.SAME_SECONDS = float(sys.argv[2])

def in_c(seconds):
    began = time.monotonic()
    hashlib.pbkdf2_hmac('sha256', b'', b'', 200_000)
    rounds = int(200_000 * seconds / (time.monotonic() - began))
    print('in', flush=True)
    hashlib.pbkdf2_hmac('sha256', b'', b'', rounds)
    print('out', flush=True)

with Preemption() as preemption:
    in_c(float(sys.argv[1]))
    print(preemption.requested)
"""


def wait_for(condition):
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_noted_and_the_handlers_are_given_back(number, capsys):
    got = []
    before = signal.signal(number, lambda *_: got.append(number))
    try:
        with Preemption() as preemption:
            assert not preemption.requested
            os.kill(os.getpid(), number)
            wait_for(lambda: preemption.requested)
            assert got == []
        os.kill(os.getpid(), number)
        wait_for(lambda: got == [number])
    finally:
        signal.signal(number, before)
    assert f'{signal.Signals(number).name}: saving and stopping' in capsys.readouterr().err
    with Preemption() as preemption:
        assert not preemption.requested


def test_an_error_inside_gives_the_handlers_back():
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    with pytest.raises(ZeroDivisionError), Preemption():
        assert signal.getsignal(signal.SIGTERM) is not before[signal.SIGTERM]
        1 / 0  # noqa: B018
    assert {number: signal.getsignal(number) for number in before} == before
    assert signal.set_wakeup_fd(-1) == -1


def start(seconds, same_seconds=5):
    command = [sys.executable, '-c', IN_C, str(seconds), str(same_seconds)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == 'in\n'
    return process


def test_a_signal_while_the_main_thread_is_away_is_answered_at_once_and_the_work_goes_on():
    process = start(1.5)
    process.send_signal(signal.SIGTERM)
    assert process.stderr.readline().startswith('SIGTERM: saving and stopping')
    assert process.poll() is None
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, 'out\nTrue\n', '')


@pytest.mark.parametrize('second', [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_the_process_at_once(second):
    process = start(30)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.stderr.readline().startswith('SIGINT: saving and stopping')
    process.send_signal(second)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (128 + second, '')
    assert time.monotonic() - began < 10


def test_the_same_sigterm_may_come_twice():
    """Once from a machine that shuts down and once from the supervisor there."""
    process = start(1.5)
    for _ in range(3):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, 'out\nTrue\n') and err.count('SIGTERM') == 1


def test_another_sigterm_ends_the_process_at_once():
    process = start(30, same_seconds=0.2)
    process.send_signal(signal.SIGTERM)
    assert process.stderr.readline().startswith('SIGTERM: saving and stopping')
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    assert (process.communicate(timeout=60)[0], process.returncode) == ('', 128 + signal.SIGTERM)
