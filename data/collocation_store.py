"""Collocations beside a token store: the list, and for each token whether it goes on with one."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from data.atomic import partial_folder, publish
from data.collocations import COVERED, MINED_TOKENS, SEEN_MORE_THAN, joins, mine
from data.errors import UserError
from data.store import Split, TokenStore, open_store

FOLDER = 'collocations'
LIST = 'collocations.tsv'
_STATE = 'made_from.json'


def with_collocations(store: TokenStore, log: Callable[[str], None] = print) -> TokenStore:
    """The store with `joins` in both splits, mined from the whole training split if no earlier call has done it.

    Raises:
      UserError: the corpus repeats no run of words often enough.
    """
    folder = store.folder / FOLDER
    if not _made(store, folder):
        with partial_folder(folder, log) as partial:
            if not _made(store, folder):  # by the process that was waited for
                _make(store, partial, log)
                publish(partial, folder)
    splits = {}
    for name in ('train', 'heldout'):
        split: Split = getattr(store, name)
        # Those of the whole split; it may have been cut since.
        found = np.memmap(folder / f'{name}.joins.bin', bool, 'r')[: len(split.tokens)]
        splits[name] = dataclasses.replace(split, joins=found)
    return dataclasses.replace(store, **splits)


def _source(store: TokenStore) -> dict:
    """What the collocations depend on."""
    return {
        'splits': store.manifest['splits'],
        'tokenizer': store.tokenizer.vocabulary.fingerprint,
        'seen more than': SEEN_MORE_THAN,
        'covered': COVERED,
        'mined tokens': MINED_TOKENS,
    }


def _made(store: TokenStore, folder: Path) -> bool:
    state = folder / _STATE
    return state.exists() and json.loads(state.read_text()) == _source(store)


def _make(store: TokenStore, folder: Path, log: Callable[[str], None]) -> None:
    store = open_store(store.folder)  # whole, whatever this run is cut to
    listed, hashes = mine(store.train, store.tokenizer)
    if not listed:
        raise UserError(
            f'{store.folder}: no run of words occurs more than {SEEN_MORE_THAN} times, so there are no collocations to '
            'mask: use another --masking.unit or a larger corpus'
        )
    lines = [f'{each.words}\t{each.count}\t{each.pmi:.4f}\n' for each in listed]
    (folder / LIST).write_text('words\tcount\tPMI in nats\n' + ''.join(lines), encoding='utf-8')
    inside = 0
    for name in ('train', 'heldout'):
        with open(folder / f'{name}.joins.bin', 'wb') as file:
            for part in joins(getattr(store, name), store.tokenizer, hashes):
                file.write(part.tobytes())
                inside += int(part.sum())
    (folder / _STATE).write_text(json.dumps(_source(store)))
    log(f'{store.folder / FOLDER}: {len(listed):,} collocations, which join {inside:,} words to the one before')
