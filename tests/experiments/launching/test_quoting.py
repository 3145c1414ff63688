"""Any argument reaches the command as it was given: through a shell, a printed line, a manifest."""

import json
import re
import shlex
import subprocess
import sys

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from experiments.launching import remote
from experiments.launching.flags import LaunchFlags
from experiments.launching.gcloud import Gcloud
from experiments.launching.jobset import literal, manifest

# Whatever a process may be given: all but NUL, and no lone surrogates, which no terminal sends.
WORDS = st.lists(st.text(st.characters(exclude_characters='\0', exclude_categories=['Cs']), max_size=20), max_size=5)
SHOW = 'import json, os, sys; os.write(1, json.dumps(sys.argv[1:]).encode())'
FLAGS = LaunchFlags(name='n', zone='us-west4-a', type='v5litepod-16', bucket='gs://bucket/folder', emit='gke')
ODD = [
    '',
    ' ',
    "'",
    '"',
    '\\',
    '\n',
    '$(id)',
    '`id`',
    '${HOME}',
    '*',
    '~',
    '!',
    '#',
    '--',
    '-n',
    '%INSTANCE%',
    'é\t;&|',
]


def run_by_shell(text: str) -> list[str]:
    """What a program is given if its name and arguments are a line for a shell, as ssh hands it to the remote one."""
    return json.loads(subprocess.run(['bash', '-c', text], capture_output=True, check=True).stdout)


@settings(deadline=None, max_examples=50)
@given(WORDS)
@example(ODD)
def test_the_remote_shell_hands_on_what_was_given(words):
    start = remote.start(words, retries=5)
    supervisor = shlex.join(shlex.split(start)[:2])
    assert start.startswith(f'{supervisor} start --retries 5 --')
    shown = run_by_shell(start.replace(supervisor, shlex.join([sys.executable, '-c', SHOW]), 1))
    assert shown == ['start', '--retries', '5', '--', *words]


@settings(deadline=None, max_examples=50)
@given(WORDS)
@example(ODD)
def test_a_printed_call_is_the_call(words):
    call = Gcloud(FLAGS)._whole(Gcloud(FLAGS).ssh(remote.start(words, 5), 'all'))
    printed = shlex.join(call)
    assert run_by_shell(f'{shlex.join([sys.executable, "-c", SHOW])} {printed}') == call


def expanded(text: str, names: dict[str, str]) -> str:
    """As Kubernetes replaces $(NAME): $$ is a dollar, an unknown name stays."""
    return re.sub(r'\$(\$|\(([^)]*)\))', lambda found: '$' if found[1] == '$' else names.get(found[2], found[0]), text)


@settings(deadline=None)
@given(st.text(st.sampled_from('$()HOME a'), max_size=12))
def test_kubernetes_replaces_nothing(text):
    assert expanded(literal(text), {'HOME': 'lost', 'H': 'lost', '': 'lost'}) == text


@settings(deadline=None)
@given(WORDS)
@example(ODD)
def test_a_manifest_holds_the_words(words):
    jobset = yaml.safe_load(manifest(FLAGS, words))
    container = jobset['spec']['replicatedJobs'][0]['template']['spec']['template']['spec']['containers'][0]
    assert [expanded(word, {}) for word in container['command'][4:]] == words


@pytest.mark.parametrize('name', ['', 'A', '-n', 'n;id', 'n id', 'n' * 41, '$(id)', '1n', 'n-'])
def test_a_name_cannot_carry_a_command(name):
    with pytest.raises(ValueError, match='^--name '):
        LaunchFlags(name=name, zone='us-west4-a', type='v5litepod-8')


@pytest.mark.parametrize(
    'bucket', ['bucket', 'gs://', 'gs://b;id', 'gs://bucket/a b', 'gs://bucket/$(id)', 'gs://bucket//a']
)
def test_a_bucket_cannot_carry_a_command(bucket):
    with pytest.raises(ValueError, match='^--bucket '):
        LaunchFlags(name='n', zone='us-west4-a', type='v5litepod-8', bucket=bucket)
