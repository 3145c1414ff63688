"""Where each token stands in the text as it was given."""

from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from data.clean import one_line
from data.offsets import aligned
from data.sentencepiece_tokenizer import SentencePieceTokenizer, train_sentencepiece
from tests.data.corpora import speeches
from tests.data.test_huggingface import KINDS, ours

ODD = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(
            'aé \t\n\r\x00\x1c\x85\u2028\ufeff\u200b\u0301\u0327\u0f71\u0f73\u0344각가각\u09c7\u09beÅK日😀▁'
        ),
    ),
    max_size=30,
)
HARD = ['e\u0f73\u0301', 'x\u0301\u0327', '가\u11a8', 'a\x00\u0301b', '\u09c7\u09be', ' \u0301 a', 'A\u030a', 'a\r\n b']


@pytest.fixture(scope='module')
def tokenizers():
    texts = [one_line(text) for text in speeches(6)]
    made = {kind: SentencePieceTokenizer(train_sentencepiece(texts, kind, 500), kind) for kind in ('unigram', 'bpe')}
    return made | {kind: ours(kind) for kind in KINDS}


@given(ODD)
@settings(deadline=None, max_examples=400)
def test_each_letter_of_a_line_has_its_place(text):
    line, places_Cx2 = aligned(text)
    assert line == one_line(text) and len(places_Cx2) == len(line)
    begins, ends = places_Cx2.T
    assert (begins < ends).all() and (np.diff(begins) >= 0).all() and (np.diff(ends) >= 0).all()
    for letter, begin, end in zip(line, begins, ends, strict=True):
        # What stands there, cleaned, holds the letter.
        assert letter == ' ' or letter in one_line(text[begin:end]), (letter, text[begin:end])


for hard in HARD:
    test_each_letter_of_a_line_has_its_place = example(hard)(test_each_letter_of_a_line_has_its_place)


def test_letters_that_compose_span_no_more_than_themselves():
    text = 'cafe\u0301s\x00 가\u11a8나 \u0344x'
    line, places_Cx2 = aligned(text)
    assert line == one_line(text) == 'cafés 각나 \u0308\u0301x'
    assert [text[begin:end] for begin, end in places_Cx2.tolist()] == [
        'c', 'a', 'f', 'e\u0301', 's', '\x00 ', '가\u11a8', '나', ' ', '\u0344', '\u0344', 'x',
    ]  # fmt: skip


@pytest.mark.parametrize('kind', ['unigram', 'bpe', *KINDS])
def test_tokens_are_those_of_encode_and_their_places_are_exact(kind, tokenizers):
    tokenizer = tokenizers[kind]

    @given(ODD)
    @example('The naïve  日本 house—😀\tof\x00 the  States, e\u0301te\u0301 ﬁne')
    @settings(deadline=None, max_examples=150)
    def check(text):
        (found,) = tokenizer.locate([text])
        assert found.ids.tolist() == tokenizer.encode([text])[0].tolist()
        begins, ends = found.spans_Tx2.T
        assert (begins <= ends).all() and (begins >= 0).all() and (ends <= len(text)).all()
        assert (np.diff(begins) >= 0).all() and (np.diff(ends) >= 0).all()
        for begin, end in found.spans_Tx2[begins < ends]:
            assert not text[begin].isspace() and not text[end - 1].isspace()

    check()


LETTERS = st.sampled_from([*'aMt.,?´\u200b\u0301日本。😀▁', 'the ', 'States', *4 * ' '])


@pytest.mark.parametrize('kind', ['unigram', 'bpe', *KINDS])
def test_tokens_are_counted_for_the_part_that_they_begin_in(kind, tokenizers):
    tokenizer = tokenizers[kind]

    @given(st.lists(st.lists(LETTERS, max_size=9).map(''.join)))
    @example(['He came, he saw. ', 'He left! ', 'Was it so?'])
    @example(['今天很好。', '我们走吧!'])
    @example(['▁the ', '▁'])
    @settings(deadline=None, max_examples=200)
    def check(texts):
        line = one_line(''.join(texts))
        places = sorted({min(place, len(line)) for place in accumulate(map(len, texts[:-1]), initial=0)})
        parts = [line[begin:end] for begin, end in pairwise([*places, len(line)])]
        ((ids_T, counts),) = tokenizer.encode_parts([parts])
        (found,) = tokenizer.locate([line])
        assert ids_T.tolist() == found.ids.tolist()
        begins = found.spans_Tx2[:, 0]
        bounds = pairwise([*places, len(line) + 1])
        expected = [int(((begin <= begins) & (begins < end)).sum()) for begin, end in bounds]
        assert counts == expected

    check()


@pytest.mark.parametrize('kind', ['unigram', 'bpe', 'cased', 'byte-level'])
def test_tokens_of_plain_text_spell_what_stands_in_their_places(kind, tokenizers):
    tokenizer = tokenizers[kind]
    text = '  ' + '\n\n '.join(speeches(3))[:3000].replace(' the ', '\tthe  ')
    (found,) = tokenizer.locate([text])
    checked = 0
    for piece, (begin, end) in zip(tokenizer.pieces(found.ids), found.spans_Tx2, strict=True):
        if piece.startswith('<0x') or '[UNK]' in piece or not piece.isascii() and not piece.startswith(('▁', 'Ġ')):
            continue
        assert piece.removeprefix('##').removeprefix('▁').removeprefix('Ġ') == text[begin:end]
        checked += 1
    assert checked > 400


def test_bytes_of_one_letter_stand_where_it_does(tokenizers):
    for kind in ('unigram', 'byte-level'):
        text = 'the 日 the'
        (found,) = tokenizers[kind].locate([text])
        inside = [text[begin:end] for begin, end in found.spans_Tx2 if begin == 4 and begin < end]
        assert inside == ['日'] * 3
