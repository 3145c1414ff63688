"""A corpus into a token store: documents cleaned, deduplicated, split and tokenized."""

import dataclasses
import hashlib
import json
import platform
import unicodedata
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np

from data import corpus, shards
from data.config import DataConfig
from data.errors import UserError
from data.files import SCRATCH, Files, is_remote, open_binary
from data.huggingface_tokenizer import HuggingFaceTokenizer
from data.pieces import pieces
from data.preparing import cleaning
from data.preparing.assembly import shard_tasks, write_shard
from data.preparing.cleaning import CleanTask, clean_piece
from data.preparing.runners import Runner
from data.preparing.selection import Selection, sample, select
from data.preparing.tokenizing import SPLITS, tokenize_chunk, tokenize_tasks
from data.sentencepiece_tokenizer import SentencePieceTokenizer, train_sentencepiece
from data.store import FORMAT, MANIFEST, OFFSETS, PARTS
from data.tokenizer import Tokenizer, tokenizer_of

PLAN = f'{SCRATCH}/plan.json'
"""Of a store that is being made: what it is made of."""
_NARROW = 1 << 16  # ids below this fit in uint16


def store_options(config: DataConfig) -> dict:
    """The options that decide what a store holds; those that have no part in it are None."""
    return {
        'corpus': config.corpus,
        'encoding': config.encoding if config.corpus.startswith('files:') else None,
        'tokenizer': config.tokenizer,
        'vocab_size': None if config.tokenizer.startswith('hf:') else config.vocab_size,
        'heldout_percent': config.heldout_percent,
        'language': config.language,
    }


def plan(config: DataConfig) -> bytes:
    """What a store of `config` would be made of now. One that was left half made goes on if its plan is this one."""
    hf = config.tokenizer.startswith('hf:')
    stated = {
        'options': store_options(config),
        'source': corpus.source(config.corpus),
        'tokenizer': read_tokenizer(config.tokenizer).vocabulary.fingerprint if hf else None,
        'sizes': [cleaning.CHUNK_LETTERS, shards.SHARD_BYTES, len(pieces(config.corpus, config.encoding))],
        'format': FORMAT,
        'versions': _versions(),
    }
    return json.dumps(stated, indent=1).encode()


def build(
    config: DataConfig, files: Files, run: Runner, log: Callable[[str], None], tokenizer: Tokenizer | None = None
) -> None:
    """Reads the corpus of `config` and writes its store, the manifest last. Finished tasks are not done again.

    Args:
      files: where. What an earlier call with the same `plan` left there is made use of.
      tokenizer: instead of the one that the config names.

    Raises:
      UserError: the corpus cannot be read or is too small.
    """
    files.write(PLAN, plan(config))
    if tokenizer is None and config.tokenizer.startswith('hf:'):
        tokenizer = read_tokenizer(config.tokenizer)
    found = enumerate(pieces(config.corpus, config.encoding))
    clean = [CleanTask(files, number, piece) for number, piece in found]
    _run(run, 'clean', clean_piece, clean)
    selection = select(clean, config.heldout_percent)
    tokenizer = tokenizer or _trained(config, files, selection, log)
    files.write(tokenizer.FILE, tokenizer.content)
    dtype = np.dtype(np.uint16 if tokenizer.vocabulary.size < _NARROW else np.uint32).name
    chunks = tokenize_tasks(files, selection, tokenizer, dtype, config.language)
    _run(run, 'tokenize', tokenize_chunk, chunks)
    counts = [json.loads(files.read(task.done)) for task in chunks]
    selection.tally.dropped['without a token'] += sum(count['empty'] for count in counts)
    if not all(sum(count['lengths'][f'{split}.documents'] for count in counts) for split in SPLITS):
        raise UserError(f'--corpus {config.corpus}: too few documents with tokens to train on some and hold out others')
    shards_made = shard_tasks(files, chunks, counts, dtype)
    _run(run, 'shard', write_shard, shards_made)
    splits = {split: _split(split, counts) for split in SPLITS}
    for task in shards_made:
        splits[task.split]['shards'][task.part].append(json.loads(files.read(task.done)))
    manifest = {
        'format': FORMAT,
        'options': store_options(config),
        'source': corpus.source(config.corpus),
        'counts': selection.tally.as_dict(),
        'text': {
            'sha256': hashlib.sha256(selection.digests_Nx32[selection.kept_N].tobytes()).hexdigest(),
            'letters': selection.letters,
        },
        'tokenizer': _described(tokenizer),
        'dtype': dtype,
        'labels': selection.label_names,
        'splits': splits,
        'versions': _versions(),
    }
    files.write(MANIFEST, (json.dumps(manifest, indent=1) + '\n').encode())
    files.remove_scratch()


def _run(run: Runner, name: str, step: Callable, tasks: list) -> None:
    left = [task for task in tasks if not task.files.exists(task.done)]
    if left:
        run(name, step, left)


def _trained(config: DataConfig, files: Files, selection: Selection, log: Callable[[str], None]) -> Tokenizer:
    """The tokenizer that an earlier call has trained, or a new one."""
    name = SentencePieceTokenizer.FILE
    if files.exists(name):
        return tokenizer_of(name, files.read(name), files.path(name))
    texts = sample(files, selection)
    log(f'training a {config.tokenizer} tokenizer on {sum(map(len, texts)):,} letters')
    return SentencePieceTokenizer(train_sentencepiece(texts, config.tokenizer, config.vocab_size), name)


def _split(split: str, counts: list[dict]) -> dict:
    """What the manifest says of a split, but for its shards."""
    sizes = {part: sum(count['lengths'][f'{split}.{part}'] for count in counts) for part in PARTS}
    return {**{part: sizes[part] for part in (*OFFSETS, 'tokens')}, 'shards': {p: [] for p in PARTS}}


def tokenizer_path(spec: str) -> Path:
    """The file of hf:PATH, which may name its folder."""
    path = Path(spec.removeprefix('hf:')).expanduser()
    return path / HuggingFaceTokenizer.FILE if path.is_dir() else path


def read_tokenizer(spec: str) -> Tokenizer:
    """The tokenizer at hf:PATH.

    Raises:
      UserError: there is none that can be read.
    """
    named = spec.removeprefix('hf:')
    path = named if is_remote(named) else str(tokenizer_path(spec))
    try:
        with open_binary(path) as file:
            content = file.read()
    except OSError as error:
        raise UserError(f'--tokenizer {spec}: cannot be read ({error.strerror or error})') from None
    return HuggingFaceTokenizer(content, path)


def _described(tokenizer: Tokenizer) -> dict:
    vocabulary = tokenizer.vocabulary
    stated = {f.name: getattr(vocabulary, f.name) for f in dataclasses.fields(vocabulary) if f.compare}
    return {'kind': type(tokenizer).__name__, 'normalizer': tokenizer.normalizer, **stated}


def _versions() -> dict[str, str]:
    """Of what decides how text becomes tokens."""
    return {
        'python': platform.python_version(),
        'unicode': unicodedata.unidata_version,
        **{name: version(name) for name in ('numpy', 'sentencepiece', 'sentencex', 'tokenizers')},
    }
