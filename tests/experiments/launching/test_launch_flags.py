"""What launch refuses before it calls anything, what a type stands for, and the manifest."""

import math
import os
import subprocess
import tarfile

import pytest
import yaml

from data.errors import UserError
from experiments import launch
from experiments.launching import slices
from experiments.launching.flags import LaunchFlags
from experiments.launching.jobset import manifest
from experiments.launching.repository import pack
from experiments.planning.slices import chip_of

GOOD = ['--name', 'n', '--zone', 'us-west4-a', '--type', 'v5litepod-8']


# After https://cloud.google.com/tpu/docs: types, chips, hosts and arrangement.
@pytest.mark.parametrize(
    ('name', 'chips', 'hosts', 'topology'),
    [
        ('v5litepod-1', 1, 1, 'v5e:1x1'),
        ('v5litepod-8', 8, 1, 'v5e:2x4'),
        ('v5litepod-16', 16, 4, 'v5e:4x4'),
        ('v5litepod-256', 256, 64, 'v5e:16x16'),
        ('v6e-8', 8, 1, 'v6e:2x4'),
        ('v6e-64', 64, 16, 'v6e:8x8'),
        ('v4-8', 4, 1, 'v4:2x2x1'),
        ('v4-32', 16, 4, 'v4:2x2x4'),
        ('v5p-8', 4, 1, 'v5p:2x2x1'),
        ('v5p-16', 8, 2, 'v5p:2x2x2'),
        ('v5p-128', 64, 16, 'v5p:4x4x4'),
    ],
)
def test_what_a_type_stands_for(name, chips, hosts, topology):
    found = slices.parse(name)
    assert (found.chips, found.hosts, found.topology) == (chips, hosts, topology)
    assert math.prod(chip_of(found.topology)[1]) == chips  # as plan reads it


@pytest.mark.parametrize('name', ['v5e-16', 'v5litepod-12', 'v4', 'v4-8;id', 'v4-٣٢', '', 'v5p-4'])
def test_a_type_that_is_none(name):
    with pytest.raises(UserError, match='^--type '):
        slices.parse(name)


@pytest.mark.parametrize(
    ('words', 'message'),
    [
        ([], '--name'),
        (GOOD[:2], '--zone is missing'),
        (GOOD[:4], '--type is missing'),
        ([*GOOD[:3], 'somewhere', *GOOD[4:]], '--zone .somewhere.'),
        ([*GOOD[:5], 'v5e-8'], '--type .v5e-8.: use v4-N'),
        ([*GOOD[:5], 'v5litepod-16'], 'its 4 hosts share no disk; name a --bucket'),
        ([*GOOD, '--spot'], '--spot: a machine that is taken away loses its disk'),
        ([*GOOD, '--retries', '-1'], '--retries -1'),
        ([*GOOD, '--create_flag=network'], '--create_flag .network.'),
        ([*GOOD, '--emit', 'slurm'], 'emit'),
        ([*GOOD, '--spott'], 'spott'),
        (GOOD, 'the command is missing'),
        ([*GOOD, '--', ''], 'the command is missing'),
    ],
)
def test_a_mistake_is_one_line(words, message):
    with pytest.raises(UserError, match=message):
        launch.main([*words, '--', 'true'] if words != GOOD else words)


def test_the_manifest_of_a_pod(capsys):
    words = ['--name', 'n', '--type', 'v5litepod-16', '--bucket', 'gs://bucket/a/b', '--spot', '--emit', 'gke']
    launch.main([*words, '--', 'python', '-m', 'experiments.ablate'])
    said = capsys.readouterr().out
    jobset = yaml.safe_load(said)
    job = jobset['spec']['replicatedJobs'][0]['template']['spec']
    pod = job['template']['spec']
    (container,) = pod['containers']
    assert (job['parallelism'], job['completions'], job['completionMode']) == (4, 4, 'Indexed')
    assert pod['nodeSelector'] == {
        'cloud.google.com/gke-tpu-accelerator': 'tpu-v5-lite-podslice',
        'cloud.google.com/gke-tpu-topology': '4x4',
        'cloud.google.com/gke-spot': 'true',
    }
    assert container['resources']['limits'] == {'google.com/tpu': 4}
    assert container['command'][-3:] == ['python', '-m', 'experiments.ablate']
    attributes = pod['volumes'][0]['csi']['volumeAttributes']
    assert attributes['bucketName'] == 'bucket' and attributes['mountOptions'].endswith('only-dir:a/b')
    assert jobset['metadata']['annotations'] == {
        'alpha.jobset.sigs.k8s.io/exclusive-topology': 'cloud.google.com/gke-nodepool'
    }
    assert 'gs://bucket/a/b/launch/n.tar.gz' in said and container['env'][0]['value'] == 'launch/n.tar.gz'


@pytest.mark.parametrize(('failing', 'expected'), [('tar', 1), ('python', 1), ('command', 2), ('', 0)])
def test_only_the_commands_own_code_says_that_a_user_was_mistaken(tmp_path, failing, expected):
    """In a pod: tar and pip, too, end with 2 when something else was wrong."""
    flags = LaunchFlags(name='n', type='v5litepod-8', bucket='gs://bucket', emit='gke')
    job = yaml.safe_load(manifest(flags, ['command']))['spec']['replicatedJobs'][0]['template']['spec']
    bash, option, script, *words = job['template']['spec']['containers'][0]['command']
    for name in ('tar', 'python', 'command.sh'):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nexit {2 if name.startswith(failing or "none") else 0}\n')
        program.chmod(0o755)
    script = script.replace('$$', '$').replace('/cloze', str(tmp_path / 'cloze'))
    environment = {'PATH': f'{tmp_path}:{os.environ["PATH"]}', 'ARCHIVE': 'n'}
    done = subprocess.run([bash, option, script, words[0], tmp_path / 'command.sh'], env=environment)
    assert done.returncode == expected


def test_a_job_of_one_host_leaves_the_rest_of_its_node_pool_to_others():
    flags = LaunchFlags(name='n', type='v5litepod-8', bucket='gs://bucket', emit='gke')
    assert yaml.safe_load(manifest(flags, ['true']))['metadata'] == {'name': 'n'}


@pytest.mark.parametrize(('asked', 'code', 'expected'), [(False, 0, 0), (False, 3, 3), (True, 0, 143)])
def test_a_pod_that_was_told_to_stop_has_not_finished(tmp_path, asked, code, expected):
    flags = LaunchFlags(name='n', type='v5litepod-8', bucket='gs://bucket', emit='gke')
    spec = yaml.safe_load(manifest(flags, ['COMMAND']))['spec']['replicatedJobs'][0]['template']['spec']
    script = spec['template']['spec']['containers'][0]['command'][2].replace('$$', '$')
    head = script.index('asked=')
    saves = f'trap "exit {code}" TERM; touch ready; sleep 60 & wait' if asked else f'touch ready; exit {code}'
    process = subprocess.Popen(['bash', '-c', script[head:], 'cloze', 'bash', '-c', saves], cwd=tmp_path)
    if asked:
        while not (tmp_path / 'ready').exists():
            pass
        process.terminate()
    assert process.wait(timeout=60) == expected


def test_the_head_of_the_manifest_packs_what_the_pod_unpacks(cloud):
    said = manifest(LaunchFlags(name='n', type='v5litepod-8', bucket='gs://bucket/a', emit='gke'), ['true'])
    (cloud.repository / 'a b').write_text('text')
    lines = ' '.join(line.removeprefix('#') for line in said.splitlines()[1:3])
    subprocess.run(['bash', '-c', lines], cwd=cloud.repository, check=True)
    with tarfile.open(cloud.folder / 'buckets' / 'bucket' / 'a' / 'launch' / 'n.tar.gz') as tar:
        assert {'a b', 'job.py', 'requirements-tpu.txt'} <= set(tar.getnames()) and 'secret' not in tar.getnames()


def test_packing_takes_changes_and_leaves_what_is_deleted_or_ignored(tmp_path):
    repository = tmp_path / 'repository'
    repository.mkdir()
    for name in ('kept', 'deleted', 'ignored'):
        (repository / name).write_text('old')
    (repository / '.gitignore').write_text('ignored\n')
    for words in (['init', '-q'], ['add', '.']):
        subprocess.run(['git', *words], cwd=repository, check=True)
    (repository / 'deleted').unlink()
    (repository / 'kept').write_text('new')
    (repository / 'untracked').write_text('too')
    pack(repository, tmp_path / 'out' / 'cloze.tar.gz')
    with tarfile.open(tmp_path / 'out' / 'cloze.tar.gz') as tar:
        assert sorted(tar.getnames()) == ['.gitignore', 'kept', 'untracked']
        assert tar.extractfile('kept').read() == b'new'


def test_packing_outside_git_is_refused(tmp_path):
    with pytest.raises(UserError, match='git says: .*Launch from a clone'):
        pack(tmp_path, tmp_path / 'out.tar.gz')
