"""What every command does with an error."""

import errno
import os

import pytest

from experiments import cli


def fails(number: int):
    def main(args):
        raise OSError(number, os.strerror(number), 'runs/a/metrics.jsonl')

    return main


@pytest.mark.parametrize('number', [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_full_disk_is_one_line_and_code_2(number, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.run(fails(number))
    said = capsys.readouterr().err
    assert stop.value.code == 2 and said.count('\n') == 1
    assert said.startswith(f'error: runs/a/metrics.jsonl: {os.strerror(number)}')


def test_another_error_of_the_system_is_not_hidden():
    with pytest.raises(OSError, match='Too many open files'):
        cli.run(fails(errno.EMFILE))


def test_only_dotted_flags_are_fields_whatever_their_values_hold():
    words = ['--workdir=runs/a.b', '--grid=optimizer.learning_rate=1e-3,0.1', '--masking.corruption-rate=0.3', '0.5']
    assert cli.given_fields(words) == ['masking.corruption_rate']
