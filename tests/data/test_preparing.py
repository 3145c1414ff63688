"""The steps: every cut gives the same store, finished tasks stay finished, and processes do what one does."""

import json
import mmap
import os
import re
import signal
import subprocess
import sys
import time
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data import build, pieces, shards
from data.clean import clean, one_line, paragraphs
from data.errors import UserError
from data.files import Files
from data.prepare import prepare
from data.preparing import cleaning, runners, selection
from data.store import open_store
from tests.data.corpora import contents, quiet, small_config

SMALL = {
    'data.pieces.PIECE_BYTES': 9000, 'data.preparing.cleaning.CHUNK_LETTERS': 5000,
    'data.shards.SHARD_BYTES': mmap.PAGESIZE, 'data.preparing.runners.BYTES_A_WORKER': 10_000,
}  # fmt: skip
"""Sizes at which the small corpus has a dozen tasks a step, and several shards."""
# Prepares with SMALL's sizes and the cores given.
SCRIPT = f"""
import importlib, os, sys
for name, size in {SMALL!r}.items():
    module, _, constant = name.rpartition('.')
    setattr(importlib.import_module(module), constant, size)
from data.preparing import runners
from data.prepare import prepare
from tests.data.corpora import small_config

if __name__ == '__main__':
    runners.cores = lambda: int(sys.argv[3])
    prepare(small_config(sys.argv[1]), sys.argv[2])
"""


@pytest.fixture
def small(monkeypatch):
    for name, size in SMALL.items():
        monkeypatch.setattr(name, size)


def run(script, *arguments):
    return subprocess.run(
        [sys.executable, '-c', script, *map(str, arguments)],
        env={**os.environ, 'PYTHONPATH': os.getcwd()},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_many_processes_make_what_one_makes(corpus, store, tmp_path):
    for workers in (1, 3):
        ran = run(SCRIPT, corpus, tmp_path / str(workers), workers)
        assert (ran.returncode, ran.stderr) == (0, '')
    one, many = contents(tmp_path / '1'), contents(tmp_path / '3')
    assert one == many and sum(name.startswith('train.tokens') for name in one) > 3
    cut = open_store(tmp_path / '3')
    for name in ('train', 'heldout'):
        for part in ('tokens', 'document_offsets', 'paragraph_offsets', 'sentence_offsets'):
            np.testing.assert_array_equal(getattr(getattr(cut, name), part), getattr(getattr(store, name), part))
        assert getattr(cut, name).labels == getattr(store, name).labels
    assert cut.manifest['counts'] == store.manifest['counts'] and cut.manifest['text'] == store.manifest['text']
    assert max(len(content) for name, content in one.items() if name.endswith('.bin')) == mmap.PAGESIZE


def test_an_interrupted_preparation_goes_on_where_it_stood(corpus, tmp_path, small):
    whole = contents(prepare(small_config(corpus), tmp_path / 'whole', log=quiet).folder)
    total = []
    prepare(small_config(corpus), tmp_path / 'counted', log=quiet, run=counting(total))
    for stop in (0, 3, len(total) // 2, len(total) - 1):
        out, first, then = tmp_path / str(stop), [], []
        with pytest.raises(KeyboardInterrupt):
            prepare(small_config(corpus), out, log=quiet, run=counting(first, stop))
        assert not out.exists()
        prepare(small_config(corpus), out, log=quiet, run=counting(then))
        assert contents(out) == whole and first + then == total


def counting(done, stop=None):
    def run(name, step, tasks):
        for task in tasks:
            if len(done) == stop:
                raise KeyboardInterrupt
            step(task)
            done.append((name, task.done))

    return run


def test_what_was_left_of_another_corpus_is_not_used(corpus, tmp_path, small):
    out, done = tmp_path / 'out', []
    with pytest.raises(KeyboardInterrupt):
        prepare(small_config(corpus, heldout_percent=30), out, log=quiet, run=counting(done, 10))
    made = prepare(small_config(corpus), out, log=quiet)
    assert contents(made.folder) == contents(prepare(small_config(corpus), tmp_path / 'new', log=quiet).folder)


def test_a_second_store_in_the_same_process_has_its_own_tokenizer(corpus, tmp_path):
    for size in (400, 350):
        made = prepare(small_config(corpus, vocab_size=size), tmp_path / 'store', overwrite=True, log=quiet)
        assert made.train.tokens.max() < size
        start, end = made.train.document_offsets[:2]
        assert made.tokenizer.decode(made.train.tokens[start:end]).split()[0].istitle()


def test_a_damaged_store_is_named_before_it_is_used(corpus, tmp_path, small):
    out = prepare(small_config(corpus), tmp_path / 'store', log=quiet).folder
    with (out / 'train.tokens-00001.bin').open('r+b') as file:
        file.seek(7)
        file.write(b'\xff')
    with pytest.raises(UserError, match='train.tokens-00001.bin is damaged: its sha256 is'):
        prepare(small_config(corpus), out, log=quiet)


def test_workers_end_with_a_killed_parent_and_the_next_call_goes_on(corpus, tmp_path):
    out = tmp_path / 'store'
    process = subprocess.Popen(
        [sys.executable, '-c', SCRIPT, str(corpus), str(out), '3'],
        env={**os.environ, 'PYTHONPATH': os.getcwd()}, stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    while not list(tmp_path.glob('.store.partial/work/clean/*.json')):
        assert process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    until = time.monotonic() + 60
    while alive(process.pid):
        assert time.monotonic() < until, 'workers are left'
        time.sleep(0.05)
    for folder, workers in ((out, 3), (tmp_path / 'whole', 1)):
        assert run(SCRIPT, corpus, folder, workers).returncode == 0
    assert contents(out) == contents(tmp_path / 'whole') and not (tmp_path / '.store.partial').exists()


def alive(session: int) -> list[str]:
    """Processes of a session."""
    found = subprocess.run(['ps', '-s', str(session), '-o', 'pid=,stat='], capture_output=True, text=True).stdout
    return [line for line in found.splitlines() if 'Z' not in line]


def step_that_kills(task):
    os.kill(os.getpid(), signal.SIGKILL)


class Task:
    size = 1 << 30


def test_a_killed_worker_is_one_line(monkeypatch):
    monkeypatch.setattr(runners, 'cores', lambda: 2)
    with pytest.raises(UserError, match='clean: a process of 2 was killed, most likely for want of memory'):
        runners.all_cores('clean', step_that_kills, [Task(), Task()])


def test_what_was_done_before_a_worker_was_killed_is_not_done_again(corpus, tmp_path, small, monkeypatch):
    monkeypatch.setattr(runners, 'cores', lambda: 2)
    first, then, out = [], [], tmp_path / 'store'

    def killed(name, step, tasks):
        if first:
            runners.all_cores(name, step_that_kills, [Task(), Task()])
        counting(first)(name, step, tasks)

    with pytest.raises(UserError, match='a process of 2 was killed'):
        prepare(small_config(corpus), out, log=quiet, run=killed)
    prepare(small_config(corpus), out, log=quiet, run=counting(then))
    assert first and then and not set(first) & set(then)


def test_a_mistake_in_a_worker_is_the_first_tasks(tmp_path, small, monkeypatch):
    monkeypatch.setattr(runners, 'cores', lambda: 3)
    for name in 'abcdef':
        (tmp_path / f'{name}.txt').write_bytes(b'x' * 9000 + (b'\xff' if name in 'ce' else b''))
    with pytest.raises(UserError, match='c.txt: not utf-8 at byte 9,000'):
        prepare(small_config(tmp_path / '*.txt'), tmp_path / 'store', log=quiet)
    assert not (tmp_path / '.store.partial').exists()


def test_little_work_starts_no_process(monkeypatch):
    monkeypatch.setattr(runners, 'ProcessPoolExecutor', None)
    done = []
    tasks = [type('Task', (), {'size': 1000})() for _ in range(50)]
    runners.all_cores('clean', done.append, tasks)
    assert done == tasks


@settings(deadline=None)
@given(st.lists(st.sampled_from(range(6)), max_size=30))
def test_of_equal_documents_the_first_is_kept(numbers):
    digests = np.array([[number] * 31 + [7] for number in numbers], np.uint8).reshape(-1, 32)
    kept, seen = [], set()
    for number in numbers:
        kept.append(number not in seen)
        seen.add(number)
    assert selection.first_of_their_kind(digests).tolist() == kept


def cleaned_letter_by_letter(text):
    """`clean`, as its documentation has it."""
    text, out, controls, surrogates = text.replace('\r\n', '\n').replace('\r', '\n'), [], 0, 0
    for letter in text:
        if letter in '\t\x0b\x0c\x1c\x1d\x1e\x1f\x85\u2028\u2029':
            out.append(' ')
        elif letter == '\ufeff' or (unicodedata.category(letter) == 'Cc' and letter != '\n'):
            controls += 1
        elif '\ud800' <= letter <= '\udfff':
            out.append('\ufffd')
            surrogates += 1
        else:
            out.append(letter)
    return unicodedata.normalize('NFC', ''.join(out)), controls, surrogates


TEXTS = st.text(st.sampled_from('ab \t\n\r\x0b\x00\x1c\x7f\x80\x85\xa0é\u0301\u2028\u3000\ufeff\ud800')) | st.text()


@settings(deadline=None, max_examples=500)
@given(TEXTS)
def test_the_quick_ways_of_cleaning_are_the_slow_one(text):
    assert clean(text) == cleaned_letter_by_letter(text)
    text = clean(text).text
    assert one_line(text) == ' '.join(text.split())
    blocks = [' '.join(block.split()) for block in re.split(r'\n(?:[^\S\n]*\n)+', text) if block.split()]
    lines = [' '.join(line.split()) for line in text.split('\n') if line.split()]
    invisible = {'Cc', 'Cf', 'Zs', 'Zl', 'Zp'}
    expected = [
        b for b in (blocks if len(blocks) > 1 else lines) if any(unicodedata.category(x) not in invisible for x in b)
    ]
    assert paragraphs(text) == expected


def test_a_file_gets_its_name_when_it_is_whole(tmp_path):
    files = Files(str(tmp_path))
    with pytest.raises(ZeroDivisionError), files.create('a/b') as file:
        file.write(b'half')
        raise ZeroDivisionError
    assert not files.exists('a/b')
    files.write('a/b', b'whole')
    assert files.read('a/b') == b'whole'
    files.remove_scratch()
    assert [path.name for path in tmp_path.iterdir()] == ['a']


def test_the_plan_changes_with_all_that_decides_what_a_task_leaves(corpus, monkeypatch):
    plans = {build.plan(small_config(corpus)), build.plan(small_config(corpus, heldout_percent=9))}
    for module, name, size in ((cleaning, 'CHUNK_LETTERS', 9), (shards, 'SHARD_BYTES', 9), (pieces, 'PIECE_BYTES', 9)):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, size)
            plans.add(build.plan(small_config(corpus)))
    assert len(plans) == 5 and all(json.loads(plan) for plan in plans)
