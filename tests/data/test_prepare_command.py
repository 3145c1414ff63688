"""`python -m experiments.prepare`, as a user runs it."""

import subprocess
import sys

import pytest

from tests.data.corpora import speeches, write_jsonl


def command(*arguments):
    ran = subprocess.run(
        [sys.executable, '-m', 'experiments.prepare', *map(str, arguments)], capture_output=True, text=True, timeout=300
    )
    return ran.returncode, ran.stdout, ran.stderr


def test_prepares_says_so_and_refuses_other_options_without_overwrite(tmp_path):
    path, out = write_jsonl(tmp_path / 'a.jsonl', speeches(8)), tmp_path / 'store'
    flags = ['--corpus', f'files:{path}', '--out', out, '--tokenizer', 'bpe', '--vocab_size', 400]
    code, printed, errors = command(*flags)
    assert (code, errors) == (0, '') and 'read 1 file, 8 lines, 8 documents; dropped none; kept' in printed
    again = command(*flags)
    assert again == (0, printed.splitlines(keepends=True)[-1], '')
    code, printed, errors = command(*flags, '--heldout_percent', 30)
    assert code == 2 and printed == '' and errors.count('\n') == 1
    assert 'made with other options (heldout_percent 15.0, not 30.0)' in errors and '--overwrite' in errors
    code, printed, errors = command(*flags, '--heldout_percent', 30, '--overwrite')
    assert (code, errors) == (0, '')


@pytest.mark.parametrize(
    ('flags', 'message'),
    [
        (['--corpus', 'files:{}/*.txt'], 'no file matches'),
        (['--corpus', 'wikipedia'], "--corpus is 'wikipedia'"),
        (['--vocab_size', 'many'], 'vocab'),
        (['--vocab_size', '100'], '--vocab_size is 100'),
        (['--colour', 'red'], 'colour'),
        (['--max_train_tokens', '5'], 'max'),
    ],
)
def test_mistakes_are_one_line_and_exit_with_2(tmp_path, flags, message):
    code, printed, errors = command('--out', tmp_path / 'store', *(flag.format(tmp_path) for flag in flags))
    assert code == 2 and printed == '' and errors.count('\n') == 1 and message in errors
    assert list(tmp_path.iterdir()) == []
