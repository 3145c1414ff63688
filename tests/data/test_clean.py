"""Cleaning: what is taken out, what stays, and that doing it twice changes nothing."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.clean import clean, one_line, paragraphs

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)  # lone surrogates too


@pytest.mark.parametrize(
    ('text', 'cleaned'),
    [
        ('De\u0301claration', 'Déclaration'),
        ('one\r\ntwo\rthree\nfour', 'one\ntwo\nthree\nfour'),
        ('one\u2028two\u2029three\x85four\x0bfive\x0csix\tseven', 'one two three four five six seven'),
        ('bell\x07 back\x08space esc\x1b[0m del\x7f c1\x9b', 'bell backspace esc[0m del c1'),
        ('before\x00after', 'beforeafter'),
        ('\ufeff\ufeffstart mid\ufeffdle', 'start middle'),
        ('\ud83d broken \udc00 pair', '\ufffd broken \ufffd pair'),
        ('kept: \u200b\u200d\u00ad👩\u200d👧 ﬁ Å½', 'kept: \u200b\u200d\u00ad👩\u200d👧 ﬁ Å½'),
    ],
)
def test_what_is_taken_out_and_what_stays(text, cleaned):
    assert clean(text).text == cleaned


def test_counts_of_what_was_taken():
    assert clean('a\x00b\x01\ufeff \ud83d\ud83d')[1:] == (3, 2)


@settings(deadline=None)
@given(ANY_TEXT)
def test_clean_text_is_nfc_without_controls_and_stays_as_it_is(text):
    cleaned = clean(text).text
    assert clean(cleaned) == (cleaned, 0, 0)
    assert unicodedata.is_normalized('NFC', cleaned)
    assert not {unicodedata.category(letter) for letter in cleaned.replace('\n', '')} & {'Cc', 'Cs', 'Zl', 'Zp'}
    cleaned.encode('utf-8')


@settings(deadline=None)
@given(ANY_TEXT)
def test_a_line_has_single_spaces_and_no_ends(text):
    line = one_line(text)
    assert line == ' '.join(line.split()) and '\n' not in line
    assert ''.join(line.split()) == ''.join(clean(text).text.split())


@pytest.mark.parametrize(
    ('text', 'found'),
    [
        ('one\ntwo\nthree', ['one', 'two', 'three']),
        ('one\nstill one\n \t\n\n\ntwo', ['one still one', 'two']),
        ('\n\none\ntwo\n\n', ['one', 'two']),
        ('  one   word \u3000 apart  ', ['one word apart']),
        ('\u200b\u200d\n\u2060', []),
        ('', []),
        ('\n\n\n', []),
    ],
)
def test_paragraphs_are_blocks_where_there_are_blank_lines_and_lines_otherwise(text, found):
    assert paragraphs(clean(text).text) == found
