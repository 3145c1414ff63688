"""Preparation: bit-identical anywhere, there whole or not at all, by one process at a time."""

import json
import os
import shutil
import subprocess
import sys

from data.prepare import prepare
from data.store import open_store
from tests.data.corpora import contents, quiet, small_config

# Prepares with the machine's CPUs or one of them.
PREPARE = """
import os, sys
if sys.argv[3] == 'one':
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from data.prepare import prepare
from tests.data.corpora import small_config
prepare(small_config(sys.argv[1], tokenizer='unigram'), sys.argv[2])
"""


def run_script(script, *arguments):
    environment = {**os.environ, 'PYTHONPATH': os.getcwd()}
    command = [sys.executable, '-c', script, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def test_the_store_is_bit_identical_whatever_the_thread_count_and_the_path(corpus, tmp_path):
    stores = []
    for cpus, folder in (('one', tmp_path / 'here'), ('all', tmp_path / 'a' / 'longer' / 'path')):
        folder.mkdir(parents=True)
        shutil.copy(corpus, folder)
        ran = run_script(PREPARE, folder / corpus.name, folder / 'store', cpus)
        assert (ran.returncode, ran.stderr) == (0, '') and len(ran.stdout.splitlines()) == 2
        stores.append(contents(folder / 'store'))
        manifest = json.loads(stores[-1].pop('manifest.json'))
        assert manifest['options'].pop('corpus') == f'files:{folder / corpus.name}'
        stores[-1]['manifest'] = manifest
        assert not any(str(folder).encode() in value for name, value in stores[-1].items() if name != 'manifest')
    assert stores[0] == stores[1]


# Kills itself at each of its writes in turn: the n-th file opened for writing, renamed or removed, for every n.
KILL = """
import os, signal, sys
from pathlib import Path
from data.prepare import prepare
from data.store import open_store
from tests.data.corpora import contents, small_config

config, old, root = small_config(sys.argv[1]), small_config(sys.argv[1], vocab_size=350), Path(sys.argv[2])
reference = prepare(config, root / 'reference').folder

def killed(moment, out, overwrite):
    child = os.fork()
    if child == 0:
        seen = 0
        def hook(event, arguments):
            nonlocal seen
            writes = event == 'open' and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if writes or event in ('os.mkdir', 'os.rename', 'os.remove', 'os.rmdir', 'shutil.rmtree'):
                seen += 1
                if seen > moment:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(hook)
        prepare(config, out, overwrite, log=lambda line: None)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

for overwrite in (False, True):
    moment = 0
    while True:
        out = root / f'{overwrite}{moment}' / 'store'
        out.parent.mkdir()
        before = contents(prepare(old, out, log=lambda line: None).folder) if overwrite else None
        if not killed(moment, out, overwrite):
            break
        if out.exists():
            open_store(out)
            assert contents(out) in (before, contents(reference)), moment
        else:
            left = {path.name for path in out.parent.iterdir()}
            assert left <= {'.store.partial', '.store.replaced'}, left
        prepare(config, out, overwrite, log=lambda line: None)
        assert contents(out) == contents(reference)
        assert [path.name for path in out.parent.iterdir() if path.name != '.store.replaced'] == ['store']
        moment += 3 if overwrite else 1
    print(overwrite, moment)
"""


def test_killed_at_any_write_it_leaves_nothing_half_written_and_starts_again(corpus, tmp_path):
    ran = run_script(KILL, corpus, tmp_path)
    assert ran.returncode == 0, ran.stderr
    moments = [int(line.split()[1]) for line in ran.stdout.splitlines() if line.startswith(('True', 'False'))]
    assert len(moments) == 2 and min(moments) >= 10


def test_what_a_killed_preparation_left_is_not_in_the_next_store(corpus, store, tmp_path):
    (tmp_path / '.store.partial' / 'folder').mkdir(parents=True)
    (tmp_path / '.store.partial' / 'tokenizer.json').write_text('{}')
    assert contents(prepare(small_config(corpus), tmp_path / 'store', log=quiet).folder) == contents(store.folder)


def test_two_processes_that_prepare_the_same_store_take_turns(corpus, tmp_path):
    script = PREPARE.replace("'unigram'", "'bpe'")
    command = [sys.executable, '-c', script, str(corpus), str(tmp_path / 'store'), 'all']
    environment = {**os.environ, 'PYTHONPATH': os.getcwd()}
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=300)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert ''.join(outputs).count('training a bpe tokenizer') == 1
    open_store(tmp_path / 'store')
    assert [path.name for path in tmp_path.iterdir()] == ['store']
