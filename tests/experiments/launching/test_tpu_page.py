"""The launches in docs/tpu.md, rehearsed as they are written there."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from experiments import launch

PAGE = (Path(__file__).parents[3] / 'docs' / 'tpu.md').read_text().replace('\\\n', ' ')
LAUNCHES = re.findall(r'^python -m experiments\.launch (.*)$', PAGE, re.M)


def test_the_page_has_its_launches():
    assert len(LAUNCHES) == 7


@pytest.mark.parametrize('line', LAUNCHES)
def test_a_line_of_the_page_is_understood(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line.replace('gs://BUCKET/FOLDER', 'gs://bucket/folder'), comments=True)
    words = words[: words.index('>')] if '>' in words else words
    at = words.index('--') if '--' in words else len(words)
    launch.main([*words[:at], '--dry_run', *words[at:]])
    printed = capsys.readouterr().out
    if '--emit' in words:
        assert yaml.safe_load(printed)['kind'] == 'JobSet'
    else:
        # Calls, and remarks as a shell's: none of what would be true had they been made.
        assert 'gcloud' in printed and all(line.startswith(('gcloud ', '# ')) for line in printed.splitlines())
    assert not list(tmp_path.iterdir())
