"""What every command does with an error."""

import errno
import os

import pytest

from data.errors import UserError
from experiments import cli
from experiments.config_file import RunFlags
from train.config import Config, Stage


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


@pytest.mark.parametrize('error', [MemoryError('Unable to allocate 9 GiB'), RuntimeError('RESOURCE_EXHAUSTED: 9 GiB')])
def test_want_of_memory_is_one_line_and_code_2(error, capsys):
    def main(args):
        raise error

    with pytest.raises(SystemExit) as stop:
        cli.run(main)
    assert stop.value.code == 2
    assert capsys.readouterr().err == f'error: not enough memory: use a smaller model, or fewer rows at once. {error}\n'


def test_another_fault_is_not_hidden():
    def main(args):
        raise RuntimeError('INTERNAL')

    with pytest.raises(RuntimeError, match='INTERNAL'):
        cli.run(main)


def test_another_error_of_the_system_is_not_hidden():
    with pytest.raises(OSError, match='Too many open files'):
        cli.run(fails(errno.EMFILE))


def test_only_dotted_flags_are_fields_whatever_their_values_hold():
    words = ['--workdir=runs/a.b', '--grid=optimizer.learning_rate=1e-3,0.1', '--masking.corruption-rate=0.3', '0.5']
    assert cli.given_fields(words) == ['masking.corruption_rate']


@pytest.mark.parametrize(
    ('written', 'meant'),
    [('--stages.0.step', '--stages.0.steps INT'), ('--stages.1.step', '--stages.1.steps INT')],
)
def test_of_several_suggestions_the_likeliest_is_made(written, meant):
    flags = RunFlags(Config(stages=(Stage(8, 1, 1), Stage(16, 1, 1))))
    with pytest.raises(UserError) as error:
        cli.parse(RunFlags, [written, '3'], flags, 'python -m experiments.pretrain')
    assert f'{written}, 3. Perhaps you meant {meant}. See' in str(error.value)
