"""The token store: flat tokens on disk, the documents and paragraphs in them, and a manifest of what they are."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data.errors import UserError
from data.tokenizer import Tokenizer, load_tokenizer

FORMAT = 1
MANIFEST = 'manifest.json'
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
    labels: list[str]
    """One a document, '' where the corpus gives none."""

    def first(self, count: int) -> 'Split':
        """The first `count` tokens (or all); the last document and paragraph are cut there."""
        count = min(count, len(self.tokens))
        documents = self.document_offsets[self.document_offsets < count]
        paragraphs = self.paragraph_offsets[self.paragraph_offsets < count]
        return Split(
            tokens=self.tokens[:count],
            document_offsets=np.append(documents, count),
            paragraph_offsets=np.append(paragraphs, count),
            labels=self.labels[: len(documents)],
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


class SplitWriter:
    """Writes one split, document by document, holding only offsets in memory."""

    def __init__(self, folder: Path, name: str, dtype: type):
        self._folder, self._name, self._dtype = folder, name, np.dtype(dtype)
        self._file = (folder / f'{name}.tokens.bin').open('wb')
        self._sha256 = hashlib.sha256()
        self._documents, self._paragraphs, self._labels = [0], [0], []
        self._length = 0

    def add(self, paragraphs: Iterable[np.ndarray], sep: int, label: int) -> None:
        """Appends a document: ids of each paragraph, and the number of its label."""
        for tokens in [*paragraphs, None]:
            if tokens is None:
                tokens = [sep]
                self._paragraphs.pop()
            content = np.asarray(tokens, self._dtype).tobytes()
            self._file.write(content)
            self._sha256.update(content)
            self._length += len(tokens)
            self._paragraphs.append(self._length)
        self._documents.append(self._length)
        self._labels.append(label)

    def close(self) -> dict:
        """Finishes the files; what the manifest says of them."""
        self._file.close()
        np.save(self._folder / f'{self._name}.documents.npy', np.array(self._documents, np.int64))
        np.save(self._folder / f'{self._name}.paragraphs.npy', np.array(self._paragraphs, np.int64))
        np.save(self._folder / f'{self._name}.labels.npy', np.array(self._labels, np.int32))
        return {
            'documents': len(self._labels),
            'paragraphs': len(self._paragraphs) - 1,
            'tokens': self._length,
            'sha256': self._sha256.hexdigest(),
        }


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
        raise UserError(f'{path}: cannot be read ({error}); prepare the store again with --overwrite') from None
    if not isinstance(manifest, dict) or manifest.get('format') != FORMAT or not manifest.keys() >= _KEYS:
        raise UserError(f'{path}: not of format {FORMAT}; prepare the store again with --overwrite')
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
            f'{folder}: made by another tokenizer than the one that lies in it; prepare it with --overwrite'
        )
    train, heldout = (_open_split(folder, name, manifest) for name in ('train', 'heldout'))
    return TokenStore(folder, train, heldout, tokenizer, manifest)


def _open_split(folder: Path, name: str, manifest: dict) -> Split:
    stated = manifest['splits'][name]
    try:
        tokens = np.memmap(folder / f'{name}.tokens.bin', dtype=manifest['dtype'], mode='r')
        documents, paragraphs, labels = (
            np.load(folder / f'{name}.{part}.npy', mmap_mode='r') for part in ('documents', 'paragraphs', 'labels')
        )
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f'{folder}: broken ({error}); prepare it again with --overwrite') from None
    held = {'documents': len(documents) - 1, 'paragraphs': len(paragraphs) - 1, 'tokens': len(tokens)}
    ends = {int(documents[-1]), int(paragraphs[-1]), len(tokens)}
    if any(held[part] != stated[part] for part in held) or len(ends) > 1 or len(labels) != held['documents']:
        raise UserError(f'{folder}: {name} does not hold what {MANIFEST} says; prepare it again with --overwrite')
    # A plain array over the same pages: numpy's memmap subclass makes every slice slower.
    return Split(tokens.view(np.ndarray), documents, paragraphs, _names(manifest['labels'], labels))


def _names(names: Sequence[str], numbers: np.ndarray) -> list[str]:
    return [names[number] for number in numbers.tolist()]
