"""Whole launches against the stand-in: what is called, what survives, what comes back."""

import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from data.errors import UserError
from experiments import cli, launch
from tests.experiments.launching.conftest import ROOT

ODD = ['a b', '', "it's", '$HOME `id` $(id)', '--flag=x', '--', '*', '"quoted"', 'two\nlines', 'ä\\n', ';', '-n', '  ']


def kinds(cloud) -> list[str]:
    """The calls in their order, without looking at things."""
    names = [' '.join(call[2:4] if call[0] == 'compute' else call[:2]) for call in cloud.calls()]
    return [name for name in names if not name.endswith('describe')]


def log_of(host: int) -> str:
    return Path(f'runs/n/runs/launch/n-host-{host}.txt').read_text()


def test_a_launch_makes_runs_fetches_and_deletes(cloud, capsys):
    cloud.job('3', '0', *ODD).run()
    assert capsys.readouterr().out.splitlines() == ['step 0', 'step 1', 'step 2']
    assert json.loads(Path('runs/n/runs/w/argv-0.json').read_text()) == ['3', '0', *ODD]
    assert Path('runs/n/runs/w/checkpoints/step-0').read_text() == '3'
    assert log_of(0) == 'step 0\nstep 1\nstep 2\n'
    assert kinds(cloud) == [
        'tpu-vm create', 'tpu-vm ssh', 'tpu-vm scp', 'tpu-vm ssh', 'tpu-vm ssh', 'tpu-vm ssh', 'tpu-vm ssh',
        'tpu-vm ssh', 'tpu-vm scp', 'tpu-vm delete',
    ]  # fmt: skip
    assert cloud.empty


def test_all_workers_run_it_and_share_the_bucket(cloud):
    cloud.job('2', type='v5litepod-16', bucket='gs://bucket/some/folder').run()
    assert Path('runs/n/runs/w/result-0').exists() and Path('runs/n/runs/w/result-1').exists()
    assert (cloud.folder / 'buckets/bucket/some/folder/w/checkpoints/step-1').read_text() == '2'
    assert not Path('runs/n/runs/w/checkpoints').exists()  # they stay in the bucket
    installed = (cloud.folder / 'pip.log').read_text().splitlines()
    assert [line.split()[0].split('/')[-1] for line in sorted(installed)] == ['0', '1']
    assert all(line.endswith('-r requirements-tpu.txt') for line in installed)


def test_only_what_git_does_not_ignore_is_copied(cloud):
    cloud.job('1', keep=1).run()
    copied = {path.name for path in (cloud.folder / 'machines/n/0/cloze').iterdir()}
    assert {'job.py', '.gitignore', 'requirements-tpu.txt'} <= copied and 'secret' not in copied


def test_ssh_that_fails_twice_is_tried_again(cloud):
    cloud.cues({'match': 'setup.sh', 'times': 2, 'code': 255, 'err': 'Connection refused'})
    cloud.job('1').run()
    assert Path('runs/n/runs/w/result-0').exists()
    assert cloud.slept == [10, 20]


def test_a_stream_that_breaks_is_taken_up_where_it_broke(cloud, capsys):
    cloud.cues({'match': 'tail -n', 'code': 255, 'err': 'broken pipe'})
    cloud.job('3').run()
    assert capsys.readouterr().out.splitlines() == ['step 0', 'step 1', 'step 2']


@pytest.mark.parametrize(
    'said',
    [
        'You do not currently have an active account selected.',
        'The required property [project] is not currently set.',
        'Error parsing [tpu].\nThe [tpu] resource is not properly specified.\nFailed to find attribute [project].',
    ],
)
def test_what_gcloud_refuses_is_not_tried_again(cloud, said):
    cloud.cues({'match': ' describe ', 'times': 9, 'err': said})
    with pytest.raises(UserError, match=f'tpu-vm describe: .*{re.escape(" ".join(said.split()))}'):
        cloud.job('1').run()
    assert len(cloud.calls()) == 1


def test_a_failing_command_ends_with_its_log_and_no_machine(cloud, capsys):
    with pytest.raises(UserError, match=r'exit code 7: .* \(runs/n/runs/launch/n-host-0.txt\)'):
        cloud.job('1', '7', retries=2).run()
    assert log_of(0).count('supervisor: exit code 7; again') == 2 and cloud.empty
    assert capsys.readouterr().out == log_of(0)


def test_a_log_with_several_tries_is_printed_to_its_end(cloud, capsys):
    job = cloud.job('1', '7', retries=3)
    hosts = job.machines.ready()
    job._start()
    while job._states(hosts)[0]['state'] == 'running':
        time.sleep(0.05)
    job._follow(hosts)
    assert capsys.readouterr().out == (cloud.folder / 'machines/n/0/cloze-job/log.txt').read_text()


def test_a_users_mistake_is_not_tried_again(cloud):
    with pytest.raises(UserError, match='exit code 2'):
        cloud.job('1', '2').run()
    assert 'again' not in log_of(0)


MISTAKE_ON_ONE = """
import pathlib, sys, time
cause = pathlib.Path('runs/cause')
if pathlib.Path.home().name == '1':
    print('the true cause')
    cause.touch()
    sys.exit(2)
while not cause.exists():
    time.sleep(0.05)
print('another host died')
sys.exit(1)
"""


@pytest.mark.parametrize('retries', [0, 300])
def test_a_host_that_fails_for_good_ends_the_others_and_is_the_one_cited(cloud, retries):
    (cloud.repository / 'job.py').write_text(MISTAKE_ON_ONE)
    file = 'runs/n/runs/launch/n-host-1.txt'
    with pytest.raises(UserError, match=rf'failed on host-1 with exit code 2: the true cause \({file}\)'):
        cloud.job(type='v5litepod-16', bucket='gs://bucket', retries=retries).run()
    assert log_of(1) == 'the true cause\n' and 'another host died' in log_of(0)
    assert log_of(0).count('again') <= 50 and cloud.empty


INTERRUPTED_ON_ONE = """
import os, pathlib, signal, time
host, runs = pathlib.Path.home().name, pathlib.Path('runs')
if not (runs / f'begun-{host}').exists():
    (runs / f'begun-{host}').touch()
    print('begun', flush=True)
    if host == '1':
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(60)
else:
    print('gone on', flush=True)
"""


def test_a_shutdown_of_one_host_starts_all_again_and_no_line_is_lost(cloud, capsys):
    (cloud.repository / 'job.py').write_text(INTERRUPTED_ON_ONE)
    cloud.job(type='v5litepod-16', bucket='gs://bucket').run()
    assert capsys.readouterr().out.splitlines() == ['begun', 'gone on'] and log_of(1) == 'begun\ngone on\n'
    assert starts(cloud) == 2


def starts(cloud) -> int:
    return len([call for call in cloud.calls('ssh') if ' start ' in call[-1]])


def test_the_same_launch_attaches_to_what_runs_and_another_is_refused(cloud, capsys):
    job = cloud.job('4000')
    job.machines.ready()
    job._start()
    with pytest.raises(UserError, match='runs another command, python job.py 4000'):
        cloud.job('4001').run()
    attached = threading.Thread(target=cloud.job('4000').run)
    attached.start()
    while 'step 3' not in capsys.readouterr().out:
        time.sleep(0.1)
    launch.main(['stop', '--name', 'n', '--zone', 'us-west4-a'])
    attached.join()
    assert starts(cloud) == 1 and 'n was stopped and keeps its machines' in cloud.said[-1]


def test_a_finished_run_is_fetched_and_not_run_again(cloud):
    cloud.job('1', keep=1).run()
    cloud.job('1').run()
    assert starts(cloud) == 1 and cloud.empty


LOST_ON_ONE = """
import os, pathlib, signal, sys, time
host, runs = pathlib.Path.home().name, pathlib.Path('runs')
print('tried', os.getpid(), flush=True)
if host == '0':
    sys.exit(0 if (runs / 'back').exists() else 1)
if (runs / 'begun').exists():
    (runs / 'back').touch()
else:
    (runs / 'begun').touch()
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(60)
"""


def test_hosts_that_try_again_in_vain_are_started_with_the_one_that_was_lost(cloud, capsys):
    (cloud.repository / 'job.py').write_text(LOST_ON_ONE)
    cloud.job(type='v5litepod-16', bucket='gs://bucket', retries=300).run()
    assert capsys.readouterr().out == log_of(0) and log_of(1).count('tried') == 2
    assert cloud.empty


def test_another_command_on_the_machines_of_a_finished_run_is_run(cloud, capsys):
    cloud.job('1', keep=1).run()
    assert json.loads(Path('runs/n/runs/w/argv-0.json').read_text()) == ['1']
    cloud.job('3').run()
    assert json.loads(Path('runs/n/runs/w/argv-0.json').read_text()) == ['3']
    assert starts(cloud) == 2 and capsys.readouterr().out == 'step 0\nstep 1\nstep 2\n' and cloud.empty


def test_workers_that_a_broken_launch_left_behind_are_stopped_first(cloud):
    job = cloud.job('400', type='v5litepod-16', bucket='gs://bucket', keep=1)
    hosts = job.machines.ready()
    job._start()
    job._call(job.gcloud.ssh('python3 cloze/experiments/launching/supervisor.py stop; rm -r cloze-job', '1'))
    again = cloud.job('401', type='v5litepod-16', bucket='gs://bucket')
    again.command = job.command
    assert sorted(state['state'] for state in again._states(hosts)) == ['absent', 'running']
    again._follow = lambda hosts: again._states(hosts)
    assert {state['state'] for state in again._watch(hosts)} == {'running'}
    assert len([call for call in cloud.calls('ssh') if call[-1].endswith('stop; fi')]) == 1


def test_subcommands_by_the_command_line(cloud, capsys):
    target = ['--name', 'n', '--zone', 'us-west4-a']
    launch.main(['status', *target])
    assert capsys.readouterr().out == 'machines n: none\n'
    with pytest.raises(UserError, match='there is no such TPU machine in --zone us-west4-a'):
        launch.main(['logs', *target])
    job = cloud.job('400')
    job.machines.ready()
    job._start()
    launch.main(['status', *target])
    said = capsys.readouterr().out
    assert 'machines n: READY, 1 hosts' in said and '"state": "running"' in said
    launch.main(['stop', *target])
    assert 'has stopped' in capsys.readouterr().out
    assert job._states(1)[0]['state'] == 'stopped'
    launch.main(['logs', *target])
    assert 'step 0' in capsys.readouterr().out
    launch.main(['fetch', *target, '--out', 'here'])
    assert Path('here/runs/w/argv-0.json').exists()
    launch.main(['fetch', *target[:2], '--bucket', 'gs://bucket', '--out', 'from-bucket'])  # needs no zone
    assert cloud.calls('gs://bucket')[-1][:2] == ['storage', 'rsync']
    launch.main(['delete', *target])
    assert cloud.empty


def test_a_stopped_run_keeps_its_machines_and_goes_on(cloud):
    job = cloud.job('60')
    ended = threading.Thread(target=job.run)
    ended.start()
    while not list(cloud.folder.glob('machines/n/0/cloze/runs/w/checkpoints/step-0')):
        time.sleep(0.05)
    launch.main(['stop', '--name', 'n', '--zone', 'us-west4-a'])
    ended.join()
    assert not cloud.empty and not Path('runs/n').exists()
    cloud.job('60').run()
    first = int(Path('runs/n/runs/w/result-0').read_text().split()[1])
    assert 0 < first < 60 and cloud.empty


def test_without_gcloud_it_says_what_to_install(cloud, monkeypatch):
    monkeypatch.setenv('PATH', str(cloud.folder))
    with pytest.raises(UserError, match='gcloud is not installed: see https'):
        cloud.job('1').run()


def test_as_a_process_of_its_own_with_this_repository(cloud, tmp_path):
    (cloud.folder / 'bin' / 'show').write_text('#!/bin/sh\nmkdir -p runs/x && printf "%s|" "$@" > runs/x/args\n')
    (cloud.folder / 'bin' / 'show').chmod(0o755)
    words = ['--name', 'n', '--zone', 'us-west4-a', '--type', 'v5litepod-8', '--', 'show', *ODD]
    ran = subprocess.run(
        [sys.executable, '-m', 'experiments.launch', *words],
        cwd=tmp_path,
        env={'PATH': f'{tmp_path / "bin"}:/usr/bin:/bin', 'CLOUD': str(cloud.folder), 'PYTHONPATH': str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert Path('runs/n/runs/x/args').read_text() == ''.join(f'{word}|' for word in ODD)
    assert ran.stderr.splitlines()[-1] == 'launch: finished; the results are in runs/n'


def test_a_rehearsal_prints_and_calls_nothing(cloud, capsys):
    launch.main([
        '--name', 'n', '--zone', 'us-west4-a', '--type', 'v5litepod-16', '--spot', '--bucket', 'gs://bucket',
        '--dry_run', '--', 'python', *ODD,
    ])  # fmt: skip
    assert not cloud.calls()
    script = capsys.readouterr().out
    assert '--topology v5e:4x4' in script
    subprocess.run(['bash', '-n'], input=script, text=True, check=True)
    assert not Path('runs').exists()


def test_cli_refuses_what_is_no_subcommand(capsys, monkeypatch):
    monkeypatch.setattr(sys, 'argv', ['launch.py', 'destroy', '--name', 'n'])
    with pytest.raises(SystemExit) as stop:
        cli.run(launch.main)
    assert stop.value.code == 2 and capsys.readouterr().err.count('\n') == 1
