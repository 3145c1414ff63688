import errno
import inspect
import json
import struct
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import UserError
from train.metrics import Metrics, NoMetrics, read

ROOT = Path(__file__).parents[2]


def train(arm, seed, step, **more):
    return {'kind': 'train', 'arm': arm, 'seed': seed, 'stage': 0, 'step': step, 'loss': 1.5, **more}


def figure(arm, seed, step, metric='loss', rate=0.15, value=2.0, **more):
    names = {'stage': 0, 'task': None, 'ft_seed': None}
    record = {'kind': 'figure', 'arm': arm, 'seed': seed, 'step': step, 'metric': metric, 'eval_rate': rate}
    return {**record, **names, 'value': value, **more}


def test_one_json_object_a_line_on_disk_at_once(tmp_path):
    with Metrics(tmp_path) as metrics:
        metrics.write(train('a', 0, 50), train('a', 1, 50))
        metrics.write({'kind': 'run', 'event': 'start', 'seconds': 1.5})
        lines = (tmp_path / 'metrics.jsonl').read_text().splitlines()
        assert len(lines) == 3
        assert [json.loads(line)['kind'] for line in lines] == ['train', 'train', 'run']
        assert read(tmp_path) == [
            train('a', 0, 50),
            train('a', 1, 50),
            {'kind': 'run', 'event': 'start', 'seconds': 1.5},
        ]
    assert not (tmp_path / 'tensorboard').exists()


def test_reading_a_workdir_without_metrics(tmp_path):
    assert read(tmp_path) == []


def test_what_is_not_finite_is_null_and_the_line_strict_json(tmp_path):
    odd = {
        'loss': float('nan'),
        'grad_norm': np.float32('inf'),
        'rate': -jnp.inf,
        'learning_rate': np.float64('nan'),
        'deep': [{'p': float('inf')}, (1, float('nan'))],
    }
    with Metrics(tmp_path) as metrics:
        metrics.write({'kind': 'train', 'arm': 'a', 'seed': 0, 'step': 1, **odd})
    line = (tmp_path / 'metrics.jsonl').read_text()
    assert not any(word in line for word in ('NaN', 'Infinity'))
    record = json.loads(line, parse_constant=pytest.fail)
    assert [record[name] for name in ('loss', 'grad_norm', 'rate', 'learning_rate')] == [None] * 4
    assert record['deep'] == [{'p': None}, [1, None]]


def test_numpy_and_jax_values_and_keys(tmp_path):
    with Metrics(tmp_path) as metrics:
        metrics.write(
            {
                'kind': 'example',
                'arm': 'a',
                'seed': np.int64(3),
                'rate': jnp.float32(0.25),
                'sentence': np.uint8(0),
                'masked': np.array([4, 7]),
                'guesses': {np.int32(4): [['▁Union', np.float32(0.5)]], 7: []},
                'text': 'line\nbreak\u2028 and "quotes"',
                'good': np.bool_(True),
            }
        )
        with pytest.raises(TypeError, match='cannot hold'):
            metrics.write({'kind': 'run', 'bad': object()})
    [record] = read(tmp_path)
    assert record['seed'] == 3 and record['rate'] == 0.25 and record['masked'] == [4, 7] and record['good'] is True
    assert record['guesses'] == {'4': [['▁Union', 0.5]], '7': []}
    assert record['text'] == 'line\nbreak\u2028 and "quotes"'


def test_a_torn_last_line_is_not_read_and_cut_before_going_on(tmp_path):
    with Metrics(tmp_path) as metrics:
        metrics.write(train('a', 0, 1), train('a', 0, 2))
    path = tmp_path / 'metrics.jsonl'
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"kind": "train", "arm": "a", "se')
    assert [record['step'] for record in read(tmp_path)] == [1, 2]
    assert path.stat().st_size > len(whole)  # reading changes nothing
    with Metrics(tmp_path) as metrics:
        metrics.write(train('a', 0, 3))
    assert [record['step'] for record in read(tmp_path)] == [1, 2, 3]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000))
def test_a_file_cut_at_any_byte_keeps_its_finished_lines(tmp_path_factory, cut):
    folder = tmp_path_factory.mktemp('cut')
    records = [train('ä▁', seed, step) for step in range(3) for seed in range(3)]
    with Metrics(folder) as metrics:
        metrics.write(*records)
    path = folder / 'metrics.jsonl'
    content = path.read_bytes()[: cut % (path.stat().st_size + 1)]
    path.write_bytes(content)
    finished = content.count(b'\n')
    assert read(folder) == records[:finished]
    with Metrics(folder) as metrics:
        metrics.write(*records[finished:])
    assert read(folder) == records


@pytest.mark.parametrize('line', ['5', 'null', '[]', '{}', '{"arm": "15%"}'])
def test_a_line_that_is_no_record_is_named(line, tmp_path):
    (tmp_path / 'metrics.jsonl').write_text(f'{{"kind": "run"}}\n{line}\n')
    with pytest.raises(UserError, match='metrics.jsonl: line 2 is no record'):
        read(tmp_path)


def test_a_broken_line_in_the_middle_is_named(tmp_path):
    (tmp_path / 'metrics.jsonl').write_text('{"kind": "run"}\n\0\0\0\n{"kind": "run"}\n')
    with pytest.raises(UserError, match='metrics.jsonl: line 2 is not JSON'):
        read(tmp_path)


def test_truncation_drops_what_came_after_the_restored_step_of_those_replicas_alone(tmp_path):
    example = {'kind': 'example', 'arm': 'a', 'seed': 0, 'rate': 0.15, 'sentence': 0}
    kept = [
        {'kind': 'run', 'event': 'start'},
        train('a', 0, 50),
        figure('a', 0, 100, 'curve_loss'),
        train('a', 0, 100),
        train('b', 0, 150),
        train('a', 1, 150),
        {'kind': 'figure', 'arm': '', 'seed': None, 'metric': 'unigram_loss', 'eval_rate': 0.15, 'value': 6.0},
    ]
    dropped = [
        train('a', 0, 101),
        figure('a', 0, 150),
        figure('a', 0, None, 'flops'),
        {'kind': 'failed', 'arm': 'a', 'seed': 0, 'step': 120},
        example,
        {'kind': 'finished', 'cohort': '3'},
        {'kind': 'finetuned', 'cohort': '3', 'arm': 'random initialisation', 'seed': 0, 'task': 'own', 'ft_seed': 0},
        {'kind': 'evaluated', 'cohort': '3', 'task': 'own'},
    ]
    kept.append({'kind': 'finished', 'cohort': '2'})
    with Metrics(tmp_path) as metrics:
        metrics.write(*kept[:4], *dropped, *kept[4:])
    with open(tmp_path / 'metrics.jsonl', 'a') as file:
        file.write('{"torn')
    with Metrics(tmp_path) as metrics:
        metrics.truncate_after({('a', 0): 100, ('c', 0): 0}, '3')
        metrics.write(train('a', 0, 102))
    assert read(tmp_path) == [*kept, train('a', 0, 102)]
    assert [path.name for path in tmp_path.iterdir()] == ['metrics.jsonl']


def test_truncation_killed_at_its_end_leaves_the_old_or_the_new_file(tmp_path):
    with Metrics(tmp_path) as metrics:
        metrics.write(train('a', 0, 1), train('a', 0, 2))
    before = (tmp_path / 'metrics.jsonl').read_bytes()
    code = """
import os, sys
from train.metrics import Metrics
os.replace = lambda *paths: os._exit(9)
Metrics(sys.argv[1]).truncate_after({('a', 0): 1}, '0')
"""
    process = subprocess.run([sys.executable, '-c', code, tmp_path], cwd=ROOT, check=False)
    assert process.returncode == 9
    assert (tmp_path / 'metrics.jsonl').read_bytes() == before
    with Metrics(tmp_path) as metrics:
        metrics.truncate_after({('a', 0): 1}, '0')
    assert [record['step'] for record in read(tmp_path)] == [1]


def test_a_killed_process_loses_no_record_it_had_written(tmp_path):
    code = """
import os, signal, sys
from train.metrics import Metrics
metrics = Metrics(sys.argv[1])
for step in range(100):
    metrics.write({'kind': 'train', 'arm': 'a', 'seed': 0, 'step': step, 'text': 'x' * 1000})
os.kill(os.getpid(), signal.SIGKILL)
"""
    process = subprocess.run([sys.executable, '-c', code, tmp_path], cwd=ROOT, check=False)
    assert process.returncode == -9
    assert [record['step'] for record in read(tmp_path)] == list(range(100))


def test_flushed_records_are_in_a_file_that_was_closed(tmp_path):
    """What a file takes over when it is closed alone, as a mounted bucket does, is not lost with the machine."""
    with Metrics(tmp_path) as metrics:
        metrics.write(train('a', 0, 1))
        held = metrics._file
        metrics.flush()
        assert held.closed
        metrics.write(train('a', 0, 2))
        assert [record['step'] for record in read(tmp_path)] == [1, 2]


def test_an_evaluation_done_again_counts_once_with_its_later_value(tmp_path):
    example = {'kind': 'example', 'arm': 'a', 'seed': 0, 'rate': 0.15, 'sentence': 0}
    with Metrics(tmp_path) as metrics:
        metrics.write(figure('a', 0, 100, value=3.0), figure('a', 0, 100, rate=0.3), figure('a', 0, 100, 'accuracy'))
        metrics.write(
            {**example, 'pieces': ['x']}, {'kind': 'run', 'event': 'start'}, {'kind': 'run', 'event': 'start'}
        )
        metrics.write(figure('a', 0, 100, value=2.5), {**example, 'pieces': ['y']}, figure('a', 1, 100))
        metrics.write(figure('a', 0, 100, 'probe', None, task='century'), figure('a', 0, 100, 'probe', None, task='n'))
    records = read(tmp_path)
    assert len(records) == 9
    assert records[0]['value'] == 2.5 and records[3]['pieces'] == ['y']


def test_the_first_failure_of_a_replica_counts(tmp_path):
    with Metrics(tmp_path) as metrics:
        for seed, step in ((0, 7), (0, 9), (1, 9)):
            metrics.write({'kind': 'failed', 'arm': 'a', 'seed': seed, 'step': step})
    assert [(record['seed'], record['step']) for record in read(tmp_path)] == [(0, 7), (1, 9)]


def scalars(folder):
    """[(name, value, step)] and the steps from which a restart hides older ones, in a folder of TensorBoard files."""
    from tensorboardX.proto.event_pb2 import Event

    found, restarts = [], []
    for path in sorted(folder.glob('events.*')):
        content = path.read_bytes()
        while content:
            (length,) = struct.unpack('<Q', content[:8])
            event = Event.FromString(content[12 : 12 + length])
            content = content[16 + length :]
            found += [(value.tag, value.simple_value, event.step) for value in event.summary.value]
            if event.session_log.status == 1:
                restarts.append(event.step)
    return found, restarts


def test_tensorboard_shows_each_replica_and_a_restart_hides_what_was_dropped(tmp_path):
    with Metrics(tmp_path, tensorboard=True) as metrics:
        metrics.write({'kind': 'run', 'event': 'start'})
        assert not (tmp_path / 'tensorboard').exists()
        metrics.write(train('mask 15/lr=1e-3', 0, 50, grad_norm=float('nan'), alive=True), train('b', 1, 50))
        metrics.write(figure('b', 1, 100, value=2.5), figure('b', 1, 100, 'probe', None, 80.0, task='century'))
        metrics.write({'kind': 'figure', 'arm': '', 'seed': None, 'step': None, 'metric': 'unigram_loss', 'value': 6.0})
        metrics.flush()
        assert len(scalars(tmp_path / 'tensorboard' / 'b-1')[0]) == 4
    folders = sorted(path.name for path in (tmp_path / 'tensorboard').iterdir())
    assert folders == ['b-1', 'mask 15~2Flr=1e-3-0']
    found, restarts = scalars(tmp_path / 'tensorboard' / 'b-1')
    assert found == [
        ('train/stage', 0, 50),
        ('train/loss', 1.5, 50),
        ('loss/0.15', 2.5, 100),
        ('probe/century', 80, 100),
    ]
    assert restarts == []
    found, _ = scalars(tmp_path / 'tensorboard' / 'mask 15~2Flr=1e-3-0')
    assert found == [('train/stage', 0, 50), ('train/loss', 1.5, 50), ('train/alive', 1, 50)]
    with Metrics(tmp_path, tensorboard=True) as metrics:
        metrics.truncate_after({('b', 1): 60}, '0')
        metrics.write(train('b', 1, 70))
    assert scalars(tmp_path / 'tensorboard' / 'b-1')[1] == [61]


def test_the_processes_that_write_nothing_take_the_same_calls():
    for name, method in vars(NoMetrics).items():
        if callable(method) and name != '__init__':
            assert inspect.signature(method) == inspect.signature(getattr(Metrics, name)), name


def test_a_full_disk_names_the_file_and_is_said_once(tmp_path, monkeypatch):
    """TensorBoard's too: with tensorboardX's own writer the process would hang."""
    with pytest.raises(OSError) as error, Metrics(tmp_path) as metrics:
        metrics._file.close()
        metrics._file = open('/dev/full', 'ab', buffering=0)  # noqa: SIM115
        metrics.write(train('a', 0, 1))
    assert (error.value.errno, error.value.filename) == (errno.ENOSPC, str(tmp_path / 'metrics.jsonl'))

    monkeypatch.setattr('tensorboardX.record_writer.open_file', lambda path: open('/dev/full', 'wb'))  # noqa: SIM115
    with pytest.raises(OSError) as error, Metrics(tmp_path, tensorboard=True) as metrics:
        for step in range(1000):
            metrics.write(train('a', 0, step))
    assert (error.value.errno, error.value.filename) == (errno.ENOSPC, str(tmp_path / 'tensorboard' / 'a-0'))
    assert len(read(tmp_path)) < 1000
