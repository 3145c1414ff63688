"""The token store: flat tokens on disk, where documents, paragraphs and sentences begin, and a manifest."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data.errors import UserError
from data.shards import check, open_array
from data.tokenizer import Tokenizer, load_tokenizer

FORMAT = 3
MANIFEST = 'manifest.json'
OFFSETS = ('documents', 'paragraphs', 'sentences')
"""Arrays of a split that say where each begins and the last ends."""
PARTS = ('tokens', *OFFSETS, 'labels')
"""Arrays of a split."""
DTYPES = {**dict.fromkeys(OFFSETS, 'int64'), 'labels': 'int32'}
"""Of the arrays on disk; that of the tokens depends on the tokenizer."""
_KEYS = {'options', 'source', 'counts', 'tokenizer', 'dtype', 'labels', 'splits'}


@dataclass(frozen=True)
class Split:
    """One side of the corpus, memory-mapped: documents joined, each one's tokens followed by one SEP."""

    tokens: np.ndarray
    """uint16 or uint32 [T]."""
    document_offsets: np.ndarray
    """int64 [documents + 1]: document d is tokens[document_offsets[d] : document_offsets[d + 1]], its SEP the last."""
    paragraph_offsets: np.ndarray
    """int64 [paragraphs + 1]; a document's last paragraph holds its SEP."""
    sentence_offsets: np.ndarray
    """int64 [sentences + 1]; none spans two paragraphs, and a document's last sentence holds its SEP."""
    labels: list[str]
    """One a document, '' where the corpus gives none."""
    joins: np.ndarray | None = None
    """bool [T], once `with_collocations` has found them: a token that begins a word of the collocation before it."""

    def first(self, count: int) -> 'Split':
        """The first `count` tokens (or all); the last document, paragraph and sentence are cut there."""
        count = min(count, len(self.tokens))
        documents, paragraphs, sentences = (
            np.append(offsets[: np.searchsorted(offsets, count)], count)
            for offsets in (self.document_offsets, self.paragraph_offsets, self.sentence_offsets)
        )
        return Split(
            tokens=self.tokens[:count],
            document_offsets=documents,
            paragraph_offsets=paragraphs,
            sentence_offsets=sentences,
            labels=self.labels[: len(documents) - 1],
            joins=None if self.joins is None else self.joins[:count],
        )


@dataclass(frozen=True)
class TokenStore:
    """A prepared corpus with its tokenizer."""

    folder: Path
    train: Split
    heldout: Split
    tokenizer: Tokenizer
    manifest: dict

    def cut(self, max_train_tokens: int) -> 'TokenStore':
        """The store with the first so many training tokens (0: all)."""
        return dataclasses.replace(self, train=self.train.first(max_train_tokens)) if max_train_tokens else self


def read_manifest(folder: str | Path) -> dict:
    """The manifest of a store.

    Raises:
      UserError: there is none, or it is not one that this version reads.
    """
    path = Path(folder) / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding='utf-8'))
    except FileNotFoundError:
        raise UserError(f'{folder}: not a token store (no {MANIFEST}); prepare it with experiments.prepare') from None
    except (OSError, ValueError) as error:
        raise UserError(
            f'{path}: cannot be read ({error}); prepare the store again with experiments.prepare --overwrite'
        ) from None
    if not isinstance(manifest, dict) or manifest.get('format') != FORMAT or not manifest.keys() >= _KEYS:
        raise UserError(f'{path}: not of format {FORMAT}; prepare the store again with experiments.prepare --overwrite')
    return manifest


def open_store(folder: str | Path) -> TokenStore:
    """Opens a prepared store; tokens stay on disk until they are read.

    Raises:
      UserError: it is missing or broken, or its tokenizer is not the one it was made with.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    tokenizer = load_tokenizer(folder)
    if tokenizer.vocabulary.fingerprint != manifest['tokenizer']['fingerprint']:
        raise UserError(
            f'{folder}: made by another tokenizer than the one that lies in it; '
            'prepare it with experiments.prepare --overwrite'
        )
    train, heldout = (_open_split(folder, name, manifest) for name in ('train', 'heldout'))
    return TokenStore(folder, train, heldout, tokenizer, manifest)


Share = tuple[int, int]
"""(i, n): what the i-th of n hosts does, which share a work."""


def check_store(store: TokenStore, share: Share = (0, 1)) -> None:
    """Reads every n-th file of a store from the i-th on and compares it with its hash in the manifest.

    Raises:
      UserError: a file is damaged; it is named.
    """
    splits = store.manifest['splits'].values()
    shards = [shard for split in splits for part in PARTS for shard in split['shards'][part]]
    first, hosts = share
    check(store.folder, shards[first::hosts])


def _open_split(folder: Path, name: str, manifest: dict) -> Split:
    stated = manifest['splits'][name]
    try:
        tokens, *offsets, labels = (
            open_array(folder, stated['shards'][part], DTYPES.get(part, manifest['dtype'])) for part in PARTS
        )
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f'{folder}: broken ({error}); prepare it again with experiments.prepare --overwrite') from None
    held = {'tokens': len(tokens)} | {part: len(found) - 1 for part, found in zip(OFFSETS, offsets, strict=True)}
    ends = {int(found[-1]) for found in offsets} | {len(tokens)}
    if any(held[part] != stated[part] for part in held) or len(ends) > 1 or len(labels) != held['documents']:
        raise UserError(
            f'{folder}: {name} does not hold what {MANIFEST} says; '
            'prepare it again with experiments.prepare --overwrite'
        )
    return Split(tokens, *offsets, _names(manifest['labels'], labels))


def _names(names: Sequence[str], numbers: np.ndarray) -> list[str]:
    return [names[number] for number in numbers.tolist()]
