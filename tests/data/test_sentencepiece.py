"""SentencePiece: its result depends on the text alone, and no text becomes a special id."""

import functools
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from data.clean import one_line
from data.errors import UserError
from data.sentencepiece_tokenizer import SentencePieceTokenizer, _training_lines, train_sentencepiece
from data.tokenizer import load_tokenizer
from tests.data.corpora import speeches


@functools.cache
def trained(model_type='bpe', vocab_size=500) -> SentencePieceTokenizer:
    texts = [one_line(text) for text in speeches(8)]
    return SentencePieceTokenizer(train_sentencepiece(texts, model_type, vocab_size), 'test')


@pytest.mark.parametrize('model_type', ['unigram', 'bpe'])
def test_specials_are_found_by_name_and_are_not_ordinary(model_type):
    tokenizer = trained(model_type)
    vocabulary = tokenizer.vocabulary
    assert tokenizer.pieces([vocabulary.pad, vocabulary.unk, vocabulary.cls, vocabulary.sep, vocabulary.mask]) == [
        '[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]',
    ]  # fmt: skip
    assert [vocabulary.pad, vocabulary.unk, vocabulary.cls, vocabulary.sep, vocabulary.mask] == [0, 1, 2, 3, 4]
    assert vocabulary.size == 500
    np.testing.assert_array_equal(vocabulary.ordinary, np.arange(5, 500))


SPELLED = st.lists(
    st.one_of(
        st.sampled_from(['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', '<s>', '</s>', '<unk>', '<0x41>', '▁', '▅']),
        st.text(st.characters(exclude_categories=()), max_size=10),
    ),
    max_size=8,
).map(''.join)  # fmt: skip


@settings(deadline=None)
@given(SPELLED)
@example('The [MASK] of the Union </s> [SEP][CLS] [PAD] <0x41>')
def test_no_text_becomes_a_special_id(text):
    for model_type in ('unigram', 'bpe'):
        tokenizer = trained(model_type)
        (ids,) = tokenizer.encode([text])
        assert ids.dtype == np.int32
        assert np.isin(ids, tokenizer.vocabulary.ordinary).all()


@settings(deadline=None)
@given(SPELLED)
@example('tabs\tand\u2028lines\nand  spaces, Ω, 👩‍👧 and \x00')
def test_decoding_gives_the_text_back(text):
    # SentencePiece writes a space as U+2581, so that this letter alone is read as a space.
    line = one_line(text.replace('▁', ''))
    tokenizer = trained()
    (ids,) = tokenizer.encode([text.replace('▁', '')])
    assert tokenizer.decode(ids) == line
    with_specials = np.concatenate([[2], ids, [4, 3, 0]]).astype(np.int32)
    assert tokenizer.decode(with_specials) == line


def test_words_start_where_the_pieces_say_so():
    tokenizer = trained()
    (ids,) = tokenizer.encode(['unquestionably the Ω states'])
    words = np.split(ids, np.flatnonzero(tokenizer.starts_word[ids])[1:])
    assert [tokenizer.decode(word) for word in words] == ['unquestionably', 'the', 'Ω', 'states']
    assert tokenizer.starts_word[:5].all()
    assert not any(
        tokenizer.starts_word[i] for i, piece in enumerate(tokenizer.pieces(range(500))) if piece[:3] == '<0x'
    )


def test_every_long_or_odd_line_is_trained_on(tmp_path):
    # Words of two letters, each in lines that SentencePiece would skip: too long, holding its mark U+2585, one word.
    text = ' '.join(f'{a}{b}' for a in 'qwxz' for b in 'jkvy' for _ in range(200))
    for lines in ([text], ['▅ ' + text[:3000]] * 2, [text.replace(' ', '')]):
        cut = _training_lines(lines, 400)
        assert max(len(line.encode()) for line in cut) <= 4192
        assert ''.join(cut).replace(' ', '') == ''.join(lines).replace(' ', '').replace('▅', '')
    odd = ['Zürich ' * 700 + 'é' * 5000]
    assert max(len(line.encode()) for line in _training_lines(odd, 400)) <= 4192
    learned = SentencePieceTokenizer(train_sentencepiece([text, *speeches(4)], 'bpe', 450), 'test')
    assert {'▁qj', '▁zy'} <= set(learned.pieces(range(450)))


def test_more_kinds_of_letters_than_pieces():
    letters = [chr(code) for code in range(0x4E00, 0x4E00 + 3000)]
    texts = [''.join(letters[i : i + 100]) for i in range(0, 3000, 100)] + list(map(one_line, speeches(4)))
    for model_type in ('unigram', 'bpe'):
        tokenizer = SentencePieceTokenizer(train_sentencepiece(texts, model_type, 400), 'test')
        (ids,) = tokenizer.encode([texts[0]])
        assert tokenizer.decode(ids) == texts[0]


@pytest.mark.parametrize('model_type', ['unigram', 'bpe'])
def test_a_vocabulary_that_cannot_be_filled_is_refused_with_the_largest_that_can(model_type):
    texts = [one_line(text) for text in speeches(2)]
    with pytest.raises(UserError, match='--vocab_size 50000 is more than the corpus can fill') as error:
        train_sentencepiece(texts, model_type, 50000)
    largest = int(re.search(r'the largest is (\d+)', str(error.value))[1])
    assert SentencePieceTokenizer(train_sentencepiece(texts, model_type, largest), 'test').vocabulary.size == largest
    with pytest.raises(UserError, match='the corpus is too small'):
        train_sentencepiece(['a b c'] * 3, model_type, 400)
    with pytest.raises(UserError, match='the corpus is too small'):
        train_sentencepiece(['▅'], model_type, 400)


TRAIN = """
import os, sys
if sys.argv[1] == 'one':
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.chdir(sys.argv[2])
from data.clean import one_line
from data.sentencepiece_tokenizer import SentencePieceTokenizer, train_sentencepiece
from tests.data.corpora import speeches
model = train_sentencepiece([one_line(text) for text in speeches(8)], 'unigram', 500)
SentencePieceTokenizer(model, 'test').save('.')
"""


def test_the_model_depends_on_neither_threads_nor_paths_and_training_is_silent(tmp_path):
    models = []
    for cpus in ('one', 'all'):
        folder = tmp_path / cpus
        folder.mkdir()
        environment = {**os.environ, 'PYTHONPATH': os.getcwd(), 'OMP_NUM_THREADS': '1' if cpus == 'one' else '4'}
        ran = subprocess.run(
            [sys.executable, '-c', TRAIN, cpus, str(folder)], env=environment, capture_output=True, text=True
        )
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, '', '')
        models.append((folder / 'tokenizer.model').read_bytes())
        assert str(tmp_path).encode() not in models[-1]
    assert models[0] == models[1]
    assert load_tokenizer(folder).vocabulary == trained('unigram').vocabulary


def test_a_broken_or_missing_model_is_one_line(tmp_path):
    with pytest.raises(UserError, match='has no tokenizer'):
        load_tokenizer(tmp_path)
    (tmp_path / 'tokenizer.model').write_bytes(b'not a model')
    with pytest.raises(UserError, match='tokenizer.model: not a SentencePiece model'):
        load_tokenizer(tmp_path)
