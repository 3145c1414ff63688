"""Preparation: what the store holds, and when it is made anew or refused."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from data.clean import clean, one_line, paragraphs
from data.errors import UserError
from data.prepare import default_folder, prepare, store_for
from data.store import open_store
from tests.data.corpora import quiet, small_config, speeches, write_jsonl


def documents_of(split):
    return [split.tokens[a:b] for a, b in zip(split.document_offsets[:-1], split.document_offsets[1:], strict=True)]


def test_every_document_is_in_one_split_tokenized_paragraph_by_paragraph(store):
    expected = {}
    for number, text in enumerate(speeches(16)):
        blocks = paragraphs(clean(text).text)
        ids = np.concatenate([*store.tokenizer.encode(blocks), [store.tokenizer.vocabulary.sep]])
        expected[tuple(ids.tolist())] = (f'half {number // 8}', blocks)
    for split in (store.train, store.heldout):
        assert split.tokens.dtype == np.uint16 and len(split.labels) == len(split.document_offsets) - 1 > 0
        assert split.document_offsets[-1] == split.paragraph_offsets[-1] == len(split.tokens)
        assert np.isin(split.document_offsets, split.paragraph_offsets).all()
        bounds = zip(split.paragraph_offsets[:-1], split.paragraph_offsets[1:], strict=True)
        texts = [store.tokenizer.decode(split.tokens[a:b]) for a, b in bounds]
        for ids, label in zip(documents_of(split), split.labels, strict=True):
            stated, blocks = expected.pop(tuple(ids.tolist()))
            assert label == stated and texts[: len(blocks)] == list(map(one_line, blocks))
            del texts[: len(blocks)]
        assert not texts
    assert not expected


def test_the_manifest_and_the_summary_say_what_was_read_and_dropped(corpus, store):
    lines = []
    prepare(small_config(corpus), store.folder, log=lines.append)
    assert len(lines) == 1 and lines[0].startswith(
        f'{store.folder}: read 1 file, 20 lines, 19 documents; '
        'dropped 4 (duplicates 1, empty documents 2, lines without a text 1)'
    )
    manifest = json.loads((store.folder / 'manifest.json').read_text())
    assert manifest['tokenizer']['fingerprint'] == store.tokenizer.vocabulary.fingerprint
    assert manifest['tokenizer']['normalizer'] == 'identity'
    assert manifest['splits']['train']['documents'] + manifest['splits']['heldout']['documents'] == 16
    assert {'sentencepiece', 'unicode'} <= manifest['versions'].keys()
    assert str(store.folder) not in (store.folder / 'manifest.json').read_text()


def test_the_split_follows_the_documents_hash_and_not_their_order(corpus, store, tmp_path):
    lines = corpus.read_text().splitlines()
    turned = tmp_path / 'turned.jsonl'
    turned.write_text('\n'.join(lines[::-1][:12]))
    other = prepare(small_config(turned), tmp_path / 'store', log=quiet)

    def texts(made):
        return [{made.tokenizer.decode(ids) for ids in documents_of(split)} for split in (made.train, made.heldout)]

    (train, heldout), (other_train, other_heldout) = texts(store), texts(other)
    assert other_train <= train and other_heldout <= heldout and other_heldout


def test_both_splits_have_a_document_whatever_the_share(corpus, tmp_path):
    for percent, side in ((0.001, 'heldout'), (99.999, 'train')):
        made = prepare(small_config(corpus, heldout_percent=percent), tmp_path / side, log=quiet)
        assert made.manifest['splits'][side]['documents'] == 1


def test_wide_ids_when_the_vocabulary_needs_them(corpus, store, tmp_path, monkeypatch):
    from data import build

    monkeypatch.setattr(build, '_NARROW', 300)
    wide = prepare(small_config(corpus), tmp_path / 'store', log=quiet)
    assert wide.train.tokens.dtype == np.uint32
    np.testing.assert_array_equal(wide.train.tokens, store.train.tokens)


def test_a_huggingface_tokenizer(corpus, tmp_path):
    from tests.data.test_huggingface import made

    file = tmp_path / 'tokenizer.json'
    file.write_text(made('uncased').to_str())
    config = small_config(corpus, tokenizer=f'hf:{file}')
    out = tmp_path / 'store'
    store = prepare(config, out, log=quiet)
    ids, expected = documents_of(store.train)[0].tolist(), [made('uncased').token_to_id('[SEP]')]
    for text in speeches(16):
        blocks = store.tokenizer.encode(paragraphs(clean(text).text))
        if ids == np.concatenate(blocks).tolist() + expected:
            break
    else:
        raise AssertionError('the first document is none of the speeches')
    assert 'lowercase' in store.manifest['tokenizer']['normalizer']
    # The vocabulary's size is the file's: the flag has no part in it.
    assert prepare(dataclasses.replace(config, vocab_size=9000), out, log=quiet).manifest == store.manifest
    file.write_text(made('cased').to_str())
    with pytest.raises(UserError, match='made by another tokenizer than .*tokenizer.json'):
        prepare(config, out, log=quiet)
    file.unlink()
    prepare(config, out, log=quiet)
    with pytest.raises(UserError, match='--tokenizer hf:.*cannot be read'):
        prepare(config, tmp_path / 'other', log=quiet)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (dict(vocab_size=450), r'made with other options \(vocab_size 400, not 450\); .*--overwrite'),
        (
            dict(tokenizer='unigram', heldout_percent=5.0),
            "tokenizer 'bpe', not 'unigram'; heldout_percent 15.0, not 5.0",
        ),
        (dict(corpus='sotu'), "corpus 'files:.*', not 'sotu'; encoding 'utf-8', not None"),
    ],
)
def test_a_store_of_other_options_is_refused_by_their_names(corpus, store, change, message):
    with pytest.raises(UserError, match=message):
        store_for(small_config(corpus, store=str(store.folder), **change), log=quiet)


def test_a_store_behind_a_link_is_made_where_the_link_leads(tmp_path):
    path = write_jsonl(tmp_path / 'corpus.jsonl', speeches(16))
    (tmp_path / 'large').mkdir()
    link = tmp_path / 'store'
    link.symlink_to(tmp_path / 'large' / 'here')
    for overwrite in (False, True):
        prepare(small_config(path), link, overwrite=overwrite, log=quiet)
        assert link.is_symlink() and (tmp_path / 'large' / 'here' / 'manifest.json').is_file()
    assert {entry.name for entry in tmp_path.iterdir()} == {'corpus.jsonl', 'large', 'store'}


def test_overwrite_and_a_corpus_that_has_changed(tmp_path):
    path = write_jsonl(tmp_path / 'a.jsonl', speeches(8))
    out = tmp_path / 'store'
    first = prepare(small_config(path), out, log=quiet)
    write_jsonl(path, speeches(9))
    with pytest.raises(UserError, match='its corpus files:.* has changed since'):
        prepare(small_config(path), out, log=quiet)
    second = prepare(small_config(path), out, overwrite=True, log=quiet)
    assert second.manifest['text'] != first.manifest['text']
    path.unlink()  # a store outlives its corpus
    assert prepare(small_config(path), out, log=quiet).manifest == second.manifest
    assert [entry.name for entry in tmp_path.iterdir()] == ['store']


def test_store_for_makes_finds_and_cuts_the_store_of_a_config(corpus, store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = small_config(corpus)
    made = store_for(config, log=quiet)
    assert made.folder == default_folder(config) and made.folder.parent.as_posix() == 'runs/stores'
    assert default_folder(dataclasses.replace(config, max_train_tokens=9)) == made.folder
    assert default_folder(dataclasses.replace(config, vocab_size=401)) != made.folder
    for count in (1, 1000, int(store.train.document_offsets[1]), int(store.train.document_offsets[1]) + 1, 10**9):
        cut = store_for(dataclasses.replace(config, max_train_tokens=count, store=str(store.folder)), log=quiet).train
        np.testing.assert_array_equal(cut.tokens, store.train.tokens[:count])
        for name in ('document_offsets', 'paragraph_offsets', 'sentence_offsets'):
            offsets = getattr(cut, name)
            assert offsets[0] == 0 and offsets[-1] == len(cut.tokens) and (np.diff(offsets) > 0).all()
            assert np.isin(offsets[:-1], getattr(store.train, name)).all()
        assert len(cut.labels) == len(cut.document_offsets) - 1


@pytest.mark.parametrize(
    ('harm', 'message'),
    [
        (lambda out: (out / 'manifest.json').unlink(), 'not a token store'),
        (lambda out: (out / 'manifest.json').write_text('{"format": 1'), 'manifest.json: cannot be read'),
        (lambda out: (out / 'manifest.json').write_text('{"format": 2}'), 'manifest.json: not of format 3'),
        (lambda out: (out / 'tokenizer.model').unlink(), 'has no tokenizer'),
        (lambda out: (out / 'train.tokens-00000.bin').unlink(), 'broken'),
        (
            lambda out: (out / 'train.tokens-00000.bin').write_bytes(b'12345678'),
            'train.tokens-00000.bin has 8 bytes, not',
        ),
        (lambda out: (out / 'heldout.documents-00000.bin').write_bytes(b'x'), 'broken'),
        (lambda out: (out / 'heldout.labels-00000.bin').write_bytes(b''), 'broken'),
    ],
)
def test_a_broken_store_is_one_line_and_made_anew_with_overwrite(corpus, store, tmp_path, harm, message):
    out = tmp_path / 'store'
    shutil.copytree(store.folder, out)
    harm(out)
    with pytest.raises(UserError, match=message) as error:
        open_store(out)
    assert '\n' not in str(error.value)
    if (out / 'manifest.json').exists():
        assert prepare(small_config(corpus), out, overwrite=True, log=quiet).manifest == store.manifest
    else:
        with pytest.raises(UserError, match='exists and is not a token store'):
            prepare(small_config(corpus), out, overwrite=True, log=quiet)


def test_a_store_whose_tokenizer_was_exchanged_is_refused(corpus, store, tmp_path):
    out = tmp_path / 'store'
    shutil.copytree(store.folder, out)
    other = prepare(small_config(corpus, vocab_size=450), tmp_path / 'other', log=quiet)
    shutil.copy(other.folder / 'tokenizer.model', out)
    with pytest.raises(UserError, match='made by another tokenizer than the one that lies in it'):
        open_store(out)


@pytest.mark.parametrize(
    ('records', 'message'),
    [
        ([], 'the corpus has no document with text'),
        ([' ', '\u200b'], r'no document with text.*dropped 2 \(empty documents 2\)'),
        (['one document'], 'the corpus has one document with text'),
        (['twice', 'twice  ', 'twice'], r'one document with text.*duplicates 2'),
        (['a', 'b'], 'the corpus is too small for a bpe tokenizer'),
    ],
)
def test_a_corpus_that_is_too_small_is_one_line_and_leaves_nothing(tmp_path, records, message):
    path = write_jsonl(tmp_path / 'corpus' / 'a.jsonl', records)
    with pytest.raises(UserError, match=message) as error:
        prepare(small_config(path), tmp_path / 'out' / 'store', log=quiet)
    assert '\n' not in str(error.value)
    assert list((tmp_path / 'out').iterdir()) == []


def test_folders_that_cannot_hold_a_store(corpus, tmp_path):
    (tmp_path / 'full').mkdir()
    (tmp_path / 'full' / 'thesis.tex').write_text('mine')
    (tmp_path / 'file').write_text('mine')
    for name in ('full', 'file', 'file/below', '/proc/store', '..'):
        with pytest.raises(UserError) as error:
            prepare(small_config(corpus), tmp_path / name if name != '..' else '..', overwrite=True, log=quiet)
        assert '\n' not in str(error.value)
    assert (tmp_path / 'full' / 'thesis.tex').read_text() == (tmp_path / 'file').read_text() == 'mine'


def test_labels_and_paths_of_any_letters(tmp_path):
    records = [{'text': text, 'label': '\ud83d\u2028née'} for text in speeches(8)]
    path = write_jsonl(tmp_path / 'caf\udce9' / 'a.jsonl', records)
    store = prepare(small_config(path), tmp_path / 'store', log=quiet)
    assert set(store.train.labels) == {'\ufffd née'}
