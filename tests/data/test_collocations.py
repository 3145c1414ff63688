"""Collocations: the measure and the cut by plain loops, and what lies beside a store."""

import dataclasses
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from data.collocation_store import FOLDER, LIST, with_collocations
from data.collocations import SEEN_MORE_THAN, SHARES, joins, mine
from data.errors import UserError
from data.prepare import prepare
from data.rows import Rows
from data.store import Split
from tests.data.corpora import VOCABULARY, quiet, small_config, speeches, write_jsonl


class Letters:
    """Every third id begins a word (`VOCABULARY`); ids are written as numbers."""

    vocabulary, starts_word = VOCABULARY, VOCABULARY.starts_word | (np.arange(60) < 5)

    def decode(self, ids):
        return ' '.join(map(str, ids))


def corpus(seed=0, documents=30) -> list[list[list[int]]]:
    """Documents as lists of words, each a list of ids; some runs of words come often."""
    random = np.random.default_rng(seed)
    heads = [i for i in range(5, 60) if i % 3 == 0]
    words = [
        [int(random.choice(heads)), *map(int, random.choice([7, 8, 10], random.integers(0, 3)))] for _ in range(25)
    ]
    idioms = [[words[i] for i in random.choice(25, size)] for size in (2, 2, 3, 3, 4, 5)]
    found = []
    for _ in range(documents):
        document = []
        while len(document) < 120:
            document += idioms[random.integers(6)] if random.random() < 0.2 else [words[random.integers(25)]]
        found.append(document)
    return found


def split_of(documents) -> Split:
    flat = [[i for word in document for i in word] + [VOCABULARY.sep] for document in documents]
    offsets = np.cumsum([0, *map(len, flat)])
    return Split(np.array(sum(flat, []), np.uint16), offsets, offsets, offsets, [''] * len(documents))


def name(run) -> str:
    return ' '.join(str(i) for word in run for i in word)


def plain_pmi(documents) -> dict[tuple, tuple[int, float]]:
    """Count and PMI of every run of 2 to 5 words, over all ways to cut it."""
    counts = {
        size: Counter(tuple(map(tuple, d[i : i + size])) for d in documents for i in range(len(d) - size + 1))
        for size in range(1, 6)
    }
    log_p = {run: math.log(n / sum(c.values())) for c in counts.values() for run, n in c.items()}

    def cuts(run):
        yield [run]
        for head in range(1, len(run)):
            for rest in cuts(run[head:]):
                yield [run[:head], *rest]

    return {
        run: (n, min(log_p[run] - sum(log_p[part] for part in cut) for cut in cuts(run) if len(cut) > 1))
        for size in range(2, 6)
        for run, n in counts[size].items()
    }


def test_the_measure_is_that_of_all_ways_to_cut():
    documents = corpus()
    listed, hashes = mine(split_of(documents), Letters())
    want = {
        ' '.join(str(i) for word in run for i in word): (len(run), *found)
        for run, found in plain_pmi(documents).items()
    }
    assert len(listed) == sum(map(len, hashes.values())) > 10
    for each in listed:
        size, count, pmi = want[each.words]
        assert each.count == count > SEEN_MORE_THAN
        assert each.pmi == pytest.approx(pmi)
    for size in SHARES:
        ours = [each.pmi for each in listed if want[each.words][0] == size]
        assert len(ours) == len(hashes[size]) and ours == sorted(ours, reverse=True)
        # None that is left out is better than one that is listed.
        theirs = sorted((pmi for n, count, pmi in want.values() if n == size and count > SEEN_MORE_THAN), reverse=True)
        np.testing.assert_allclose(ours, theirs[: len(ours)])


def test_the_list_is_as_long_as_half_of_the_tokens_need():
    documents = corpus()
    tokens = sum(len(word) for document in documents for word in document)

    def covered(runs) -> float:
        inside = 0
        for document in documents:
            marks = [False] * len(document)
            for i in range(len(document)):
                for size in range(2, 6):
                    if (run := tuple(map(tuple, document[i : i + size]))) in runs:
                        marks[i : i + len(run)] = [True] * len(run)
            inside += sum(len(word) for word, mark in zip(document, marks, strict=True) if mark)
        return inside / tokens

    listed, _ = mine(split_of(documents), Letters())
    names = {name(run): run for run in plain_pmi(documents)}
    runs = [names[each.words] for each in listed]
    assert covered(set(runs)) >= 0.5
    pairs = [run for run in runs if len(run) == 2]
    assert covered(set(runs) - set(pairs[-1:])) < 0.55
    assert len(pairs) >= len(runs) / 2 - 1


def test_text_is_cut_from_the_left_the_longest_first():
    documents = corpus(1)
    split = split_of(documents)
    listed, hashes = mine(split, Letters())
    names = {name(run): run for run in plain_pmi(documents)}
    runs = {names[each.words] for each in listed}
    want = []
    for document in documents:
        i, joined = 0, set()
        while i < len(document):
            size = next((n for n in (5, 4, 3, 2) if tuple(map(tuple, document[i : i + n])) in runs), 1)
            joined |= set(range(i + 1, i + size))
            i += size
        want += [place == 0 and i in joined for i, word in enumerate(document) for place in range(len(word))] + [False]
    found = np.concatenate(list(joins(split, Letters(), hashes)))
    np.testing.assert_array_equal(found, want)


def test_stretches_of_documents_change_nothing(monkeypatch):
    split = split_of(corpus(2))
    _, hashes = mine(split, Letters())
    whole = np.concatenate(list(joins(split, Letters(), hashes)))
    monkeypatch.setattr('data.collocations._CHUNK_TOKENS', 300)
    parts = list(joins(split, Letters(), hashes))
    assert len(parts) > 5
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@pytest.fixture(scope='module')
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp('collocations')
    corpus = write_jsonl(folder / 'corpus.jsonl', list(speeches(12)))
    return prepare(small_config(corpus, vocab_size=500, heldout_percent=20.0), folder / 'store', log=quiet)


def test_they_are_found_once_and_serve_a_store_that_is_cut(store, monkeypatch):
    said = []
    found = with_collocations(store, said.append)
    assert len(said) == 1 and 'collocations, which join' in said[0]
    lines = (store.folder / FOLDER / LIST).read_text().splitlines()
    assert lines[0] == 'words\tcount\tPMI in nats' and any(line.startswith('United States\t') for line in lines)
    for split in (found.train, found.heldout):
        assert len(split.joins) == len(split.tokens) and 0 < split.joins.mean() < 0.5
        assert store.tokenizer.starts_word[split.tokens[split.joins]].all()
    monkeypatch.setattr('data.collocation_store.mine', None)
    cut = with_collocations(store.cut(1000), said.append)
    np.testing.assert_array_equal(cut.train.joins, found.train.joins[:1000])
    assert len(said) == 1
    again = dataclasses.replace(store, manifest={**store.manifest, 'splits': {}})
    with pytest.raises(TypeError):  # another store's: mined anew
        with_collocations(again, said.append)


def test_rows_carry_them(store):
    split = with_collocations(store, quiet).heldout
    rows = Rows(split, 32, store.tokenizer.vocabulary, keep_partial=True)
    numbers = np.arange(len(rows)).reshape(1, -1)
    joins = rows.joins(numbers)
    assert not joins[..., 0].any() and not joins[..., -1].any()
    flat = joins[0][:, 1:-1].reshape(-1)
    np.testing.assert_array_equal(flat[: len(split.tokens)], split.joins)
    assert not flat[len(split.tokens) :].any()
    assert Rows(store.heldout, 32, store.tokenizer.vocabulary).joins(numbers) is None


def test_a_corpus_that_repeats_nothing_is_refused(tmp_path: Path):
    words = [f'word{number}' for number in range(200)]
    corpus = write_jsonl(tmp_path / 'corpus.jsonl', [' '.join(words[i : i + 20]) for i in range(0, 200, 20)])
    made = prepare(small_config(corpus, vocab_size=300, heldout_percent=20.0), tmp_path / 'store', log=quiet)
    with pytest.raises(UserError, match='no run of words occurs more than 10 times'):
        with_collocations(made, quiet)
    assert not (made.folder / FOLDER).exists()
