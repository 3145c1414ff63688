"""A corpus into a token store: documents cleaned, deduplicated, split and tokenized."""

import dataclasses
import hashlib
import json
import platform
import unicodedata
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np

from data import corpus
from data.clean import clean, one_line, paragraphs
from data.config import DataConfig
from data.corpus import Document
from data.errors import UserError
from data.huggingface_tokenizer import HuggingFaceTokenizer
from data.sentencepiece_tokenizer import SentencePieceTokenizer, train_sentencepiece
from data.store import FORMAT, MANIFEST, SplitWriter
from data.tally import Tally, sentence
from data.tokenizer import Tokenizer

TOKENIZER_LETTERS = 100_000_000
"""Text that a SentencePiece tokenizer is trained on at most: whole training documents, chosen by their hash."""
_BATCH_LETTERS = 1 << 22  # letters tokenized at once
_NARROW = 1 << 16  # ids below this fit in uint16
_TEXTS = 'documents.jsonl'


def store_options(config: DataConfig) -> dict:
    """The options that decide what a store holds; those that have no part in it are None."""
    return {
        'corpus': config.corpus,
        'encoding': config.encoding if config.corpus.startswith('files:') else None,
        'tokenizer': config.tokenizer,
        'vocab_size': None if config.tokenizer.startswith('hf:') else config.vocab_size,
        'heldout_percent': config.heldout_percent,
    }


def build(config: DataConfig, folder: Path, log: Callable[[str], None]) -> None:
    """Reads the corpus of `config` and writes its store into an empty folder, the manifest last.

    Raises:
      UserError: the corpus cannot be read or is too small.
    """
    tally, source = Tally(), corpus.source(config.corpus)
    tokenizer = read_tokenizer(config.tokenizer) if config.tokenizer.startswith('hf:') else None
    digests, labels, letters = _collect(config, folder / _TEXTS, tally)
    heldout = _chosen(digests, config.heldout_percent, tally)
    if tokenizer is None:
        share = TOKENIZER_LETTERS / sum(letters)
        texts = _sample(folder / _TEXTS, ~heldout & (_fractions(digests, 8) < share))
        log(f'training a {config.tokenizer} tokenizer on {sum(map(len, texts)):,} letters')
        model = train_sentencepiece(texts, config.tokenizer, config.vocab_size)
        tokenizer = SentencePieceTokenizer(model, SentencePieceTokenizer.FILE)
    tokenizer.save(folder)
    label_number = {name: number for number, name in enumerate(sorted(set(labels)))}
    dtype = np.uint16 if tokenizer.vocabulary.size < _NARROW else np.uint32
    writers = [SplitWriter(folder, name, dtype) for name in ('train', 'heldout')]
    for number, ids in enumerate(_tokenized(folder / _TEXTS, tokenizer)):
        if sum(map(len, ids)):
            writers[int(heldout[number])].add(ids, tokenizer.vocabulary.sep, label_number[labels[number]])
        else:
            tally.dropped['without a token'] += 1
    splits = {name: writer.close() for name, writer in zip(('train', 'heldout'), writers, strict=True)}
    (folder / _TEXTS).unlink()
    if not all(split['documents'] for split in splits.values()):
        raise UserError(f'--corpus {config.corpus}: too few documents with tokens to train on some and hold out others')
    manifest = {
        'format': FORMAT,
        'options': store_options(config),
        'source': source,
        'counts': tally.as_dict(),
        'text': {'sha256': hashlib.sha256(b''.join(digests)).hexdigest(), 'letters': sum(letters)},
        'tokenizer': _described(tokenizer),
        'dtype': np.dtype(dtype).name,
        'labels': list(label_number),
        'splits': splits,
        'versions': {
            'python': platform.python_version(),
            'unicode': unicodedata.unidata_version,
            **{name: version(name) for name in ('numpy', 'sentencepiece', 'tokenizers')},
        },
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + '\n', encoding='utf-8')


def heldout_documents(config: DataConfig) -> Iterator[tuple[Document, list[str]]]:
    """The documents that a store of `config` holds out, in order, with their paragraphs: read anew from the corpus.

    Raises:
      UserError: the corpus cannot be read or is too small.
    """
    digests, kept = [], {}
    lowest = 1.0
    for number, (document, blocks, digest) in enumerate(_documents(config, Tally())):
        digests.append(digest)
        (fraction,) = _fractions([digest], 0)
        if fraction < max(config.heldout_percent / 100, lowest):
            kept[number] = document, blocks
            lowest = min(lowest, fraction)
    heldout = _chosen(digests, config.heldout_percent, Tally())
    for number in np.flatnonzero(heldout).tolist():
        yield kept[number]


def _collect(config: DataConfig, path: Path, tally: Tally) -> tuple[list[bytes], list[str], list[int]]:
    """Cleans and deduplicates the corpus into a file; each kept document's sha256, label and letters."""
    digests, labels, letters = [], [], []
    with path.open('w', encoding='utf-8') as file:
        for document, blocks, digest in _documents(config, tally):
            digests.append(digest)
            labels.append(one_line(document.label))
            letters.append(len(' '.join(blocks)))
            file.write(json.dumps(blocks, ensure_ascii=False) + '\n')
    return digests, labels, letters


def _documents(config: DataConfig, tally: Tally) -> Iterator[tuple[Document, list[str], bytes]]:
    """The documents that are kept, each with its cleaned paragraphs and their sha256."""
    seen = set()
    for document in corpus.documents(config.corpus, config.encoding, tally):
        text, controls, surrogates = clean(document.text)
        tally.mended.update({'control characters removed': controls, 'lone surrogates replaced': surrogates})
        blocks = paragraphs(text)
        digest = hashlib.sha256(' '.join(blocks).encode()).digest()
        if not blocks or digest in seen:
            tally.dropped['duplicates' if blocks else 'empty documents'] += 1
            continue
        seen.add(digest)
        yield document, blocks, digest


def _fractions(digests: list[bytes], start: int) -> np.ndarray:
    """A number in [0, 1) of each document, from eight bytes of its hash."""
    words = np.frombuffer(b''.join(digest[start : start + 8] for digest in digests), '>u8')
    return words.astype(np.float64) / 2**64


def _chosen(digests: list[bytes], heldout_percent: float, tally: Tally) -> np.ndarray:
    """Which documents are held out, bool: by hash, and at least one on each side."""
    if len(digests) < 2:
        raise UserError(
            f'the corpus has {"one document" if digests else "no document"} with text, and needs one to train on and '
            f'one to hold out ({sentence(tally.as_dict())}); a blank line in a .txt file begins a new document'
        )
    fractions = _fractions(digests, 0)
    heldout = fractions < heldout_percent / 100
    heldout[fractions.argmin()], heldout[fractions.argmax()] = True, False
    return heldout


def _texts(path: Path) -> Iterator[list[str]]:
    with path.open(encoding='utf-8', newline='\n') as file:
        for line in file:
            yield json.loads(line)


def _sample(path: Path, chosen: np.ndarray) -> list[str]:
    return [block for number, blocks in enumerate(_texts(path)) if chosen[number] for block in blocks]


def _tokenized(path: Path, tokenizer: Tokenizer) -> Iterator[list[np.ndarray]]:
    """The ids of each paragraph of each document, many documents at a time."""
    batch, letters = [], 0
    for blocks in _texts(path):
        batch.append(blocks)
        letters += sum(map(len, blocks))
        if letters >= _BATCH_LETTERS:
            yield from _encoded(batch, tokenizer)
            batch, letters = [], 0
    yield from _encoded(batch, tokenizer)


def _encoded(batch: list[list[str]], tokenizer: Tokenizer) -> Iterator[list[np.ndarray]]:
    ids = iter(tokenizer.encode([block for blocks in batch for block in blocks]))
    for blocks in batch:
        yield [next(ids) for _ in blocks]


def tokenizer_path(spec: str) -> Path:
    """The file of hf:PATH, which may name its folder."""
    path = Path(spec.removeprefix('hf:')).expanduser()
    return path / HuggingFaceTokenizer.FILE if path.is_dir() else path


def read_tokenizer(spec: str) -> Tokenizer:
    """The tokenizer at hf:PATH.

    Raises:
      UserError: there is none that can be read.
    """
    path = tokenizer_path(spec)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f'--tokenizer {spec}: cannot be read ({error.strerror})') from None
    return HuggingFaceTokenizer(content, str(path))


def _described(tokenizer: Tokenizer) -> dict:
    vocabulary = tokenizer.vocabulary
    stated = {f.name: getattr(vocabulary, f.name) for f in dataclasses.fields(vocabulary) if f.name != 'ordinary'}
    return {'kind': type(tokenizer).__name__, 'normalizer': tokenizer.normalizer, **stated}
