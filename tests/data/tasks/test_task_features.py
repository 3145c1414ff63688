"""Examples as rows: pairs cut to fit, words tagged at their first token, passages in windows with exact places."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.clean import one_line
from data.sentencepiece_tokenizer import SentencePieceTokenizer, train_sentencepiece
from data.tasks.features import encode
from data.tasks.task import Answer, Question, TaggedSentence, Task, TextExample
from tests.data.corpora import speeches
from tests.data.tasks.task_files import CONTEXT, answer
from tests.data.test_huggingface import ours

PAIRS = Task('pairs', 'classification', ('no', 'yes'), ('accuracy',), {})
NUMBERS = Task('numbers', 'regression', (), ('pearson',), {})
TAGS = Task('tags', 'tagging', ('O', 'B-X', 'I-X'), ('entity_f1',), {})
SPANS = Task('spans', 'span', (), ('f1', 'exact_match'), {})


@functools.cache
def tokenizer(kind):
    if kind == 'unigram':
        texts = [one_line(text) for text in speeches(4)]
        return SentencePieceTokenizer(train_sentencepiece(texts, kind, 400), kind)
    return ours(kind)


TOKENIZERS = ['unigram', 'cased', 'byte-level']


def rows(features, array):
    return [array[first:last].tolist() for first, last in zip(features.offsets, features.offsets[1:], strict=False)]


def longest_first(first, second, room):
    """Devlin et al. 2018: a token at a time off the longer side, off the second if they are alike."""
    first, second = list(first), list(second)
    while len(first) + len(second) > room:
        (first if len(first) > len(second) else second).pop()
    return first, second


@given(st.integers(0, 40), st.integers(0, 40), st.integers(8, 40))
@settings(deadline=None)
def test_a_pair_is_cut_a_token_at_a_time_off_the_longer_side(count, second_count, max_length):
    example = TextExample('0', 'a ' * count, 'b ' * second_count, 'yes')
    made = tokenizer('unigram')
    features = encode(PAIRS, [example], made, max_length)
    a, b = made.encode([example.first, example.second])
    first, second = longest_first(a.tolist(), b.tolist(), max_length - 3)
    vocabulary = made.vocabulary
    assert features.tokens_T.tolist() == [vocabulary.cls, *first, vocabulary.sep, *second, vocabulary.sep]
    assert features.type_ids_T.tolist() == [0] * (len(first) + 2) + [1] * (len(second) + 1)
    assert features.cut == (len(first) + len(second) < len(a) + len(b)) and features.targets.tolist() == [1]


def test_single_sentences_numbers_and_labels_that_are_kept_back():
    made = tokenizer('cased')
    texts = [TextExample(str(i), text, None, label) for i, (text, label) in enumerate(
        [('the States', 'no'), ('', 'yes'), ('the ' * 50, None)])]  # fmt: skip
    features = encode(PAIRS, texts, made, 16)
    ids = made.encode(['the States'])[0].tolist()
    cls, sep = made.vocabulary.cls, made.vocabulary.sep
    assert rows(features, features.tokens_T)[:2] == [[cls, *ids, sep], [cls, sep]]
    assert features.lengths_N.tolist() == [len(ids) + 2, 2, 16] and features.cut == 1
    assert features.targets.tolist() == [0, 1, -1] and not features.type_ids_T.any()
    features = encode(NUMBERS, [TextExample('0', 'a', 'b', 2.5), TextExample('1', 'a', 'b', None)], made, 16)
    assert features.targets.dtype == np.float32 and features.targets[0] == 2.5 and np.isnan(features.targets[1])
    assert len(encode(PAIRS, [], made, 16)) == 0


@pytest.mark.parametrize('kind', TOKENIZERS)
def test_every_word_is_tagged_once_at_its_first_token(kind):
    made = tokenizer(kind)
    words = [*speeches(2)[1].split()[:90], '\u200b', 'xq' * 45, '日本', 'of']
    tags = [TAGS.labels[i % 3] for i in range(len(words))]
    examples = [
        TaggedSentence('0', ('the', 'States'), ('O', 'B-X')),
        TaggedSentence('1', tuple(words), tuple(tags)),
        TaggedSentence('2', ('unseen',), None),
    ]
    features = encode(TAGS, examples, made, 24)
    assert (features.lengths_N <= 24).all() and features.examples_N.tolist() == sorted(features.examples_N)
    for place, example in enumerate(examples):
        found = {}
        for row in np.flatnonzero(features.examples_N == place):
            part = slice(features.offsets[row], features.offsets[row + 1])
            tokens, numbers, targets = features.tokens_T[part], features.words_T[part], features.targets[part]
            firsts = np.flatnonzero(numbers >= 0)
            assert numbers[firsts].tolist() == list(range(numbers[firsts][0], numbers[firsts][-1] + 1))
            for index, begin in enumerate(firsts):
                word = numbers[begin]
                assert word not in found
                end = firsts[index + 1] if index + 1 < len(firsts) else len(tokens) - 1
                found[word] = targets[begin]
                # The tokens of a word are those that it has after a space, as in a sentence.
                ids = made.encode([example.words[word]])[0].tolist() or [made.vocabulary.unk]
                assert tokens[begin:end].tolist() == ids[:22]
            assert (targets[numbers < 0] == -1).all()
        assert sorted(found) == list(range(len(example.words)))
        expected = [TAGS.labels.index(tag) for tag in example.tags] if example.tags else [-1] * len(example.words)
        assert [found[word] for word in range(len(example.words))] == expected
    assert features.cut >= 1  # the word of 90 letters


@pytest.mark.parametrize('kind', TOKENIZERS)
def test_words_alone_have_the_tokens_that_they_have_in_the_sentence(kind):
    made = tokenizer(kind)
    words = tuple(speeches(3)[2].split()[:60])
    features = encode(TAGS, [TaggedSentence('0', words, None)], made, 512)
    assert features.tokens_T[1:-1].tolist() == made.encode([' '.join(words)])[0].tolist()


@pytest.mark.parametrize('kind', TOKENIZERS)
def test_windows_cover_the_passage_and_hold_the_question(kind):
    made = tokenizer(kind)
    context = '  '.join(speeches(2))[:1500]
    question = Question('q', 'Who was it?', context, ())
    features = encode(SPANS, [question, question], made, 64, stride=20)
    (passage,) = made.locate([context])
    asked = made.encode([question.question])[0].tolist()
    seen, starts = set(), []
    for row in np.flatnonzero(features.examples_N == 0):
        tokens = rows(features, features.tokens_T)[row]
        spans_Lx2 = features.spans_Tx2[features.offsets[row] : features.offsets[row + 1]]
        inside = np.flatnonzero(spans_Lx2[:, 0] >= 0)
        assert tokens[1 : 1 + len(asked)] == asked and inside[0] == len(asked) + 2 and inside[-1] == len(tokens) - 2
        types = rows(features, features.type_ids_T)[row]
        assert types == [0] * (len(asked) + 2) + [1] * (len(tokens) - len(asked) - 2)
        start = next(
            i
            for i in range(0, len(passage.ids), 20)
            if passage.ids[i : i + len(inside)].tolist() == tokens[inside[0] : -1]
            and (passage.spans_Tx2[i : i + len(inside)] == spans_Lx2[inside]).all()
        )
        starts.append(start)
        seen |= set(range(start, start + len(inside)))
    assert seen == set(range(len(passage.ids))) and starts == list(range(0, 20 * len(starts), 20))
    assert (features.lengths_N <= 64).all() and (features.lengths_N[:-1] == 64).sum() >= len(starts) - 1
    assert (features.examples_N == 1).sum() == len(starts)


@pytest.mark.parametrize('kind', TOKENIZERS)
@pytest.mark.parametrize('max_length', [24, 48, 384])
def test_answers_come_back_letter_for_letter(kind, max_length):
    made = tokenizer(kind)
    context = f'{CONTEXT} ' * 3
    golds = [
        answer(text) for text in ('Panthers', 'naïve', '“30–6”', '1966', 'Łódź', 'e\u0301ternally', 'The  Panthers')
    ]
    golds += [(text, context.rindex(text)) for text in ('Panthers', 'winners\tof', 'to Łódź')]
    questions = [Question(str(i), 'Who?', context, (Answer(*gold),)) for i, gold in enumerate(golds)]
    features = encode(SPANS, questions, made, max_length, stride=8)
    for place, (text, start) in enumerate(golds):
        held = 0
        for row in np.flatnonzero(features.examples_N == place):
            first, last = features.targets[row]
            spans_Lx2 = features.spans_Tx2[features.offsets[row] : features.offsets[row + 1]]
            if first == 0:
                assert last == 0
                continue
            held += 1
            begin, end = spans_Lx2[first, 0], spans_Lx2[last, 1]
            assert begin <= start and end >= start + len(text)  # a token may hold more than the answer
            if kind == 'cased':  # it cuts at every punctuation mark
                assert context[begin:end] == text
            assert context[begin:end].strip('“”–,.') in (text, text.strip('“”–,.'))
        assert held >= 1, text


def test_an_answer_that_no_window_holds_is_none_there_and_the_first_that_fits_is_taken():
    made = tokenizer('unigram')
    context = 'the States ' * 40
    answers = (Answer(context[:300], 0), Answer('States', 4), Answer('the', 0))
    features = encode(SPANS, [Question('q', 'Who?', context, answers)], made, 32, stride=16)
    assert features.targets[0].tolist() != [0, 0] and not features.targets[1:].any()
    first, last = features.targets[0]
    assert context[features.spans_Tx2[first, 0] : features.spans_Tx2[last, 1]] == 'States'
    empty = encode(SPANS, [Question('q', 'who ' * 200, '', (), True)], made, 32)
    assert len(empty) == 1 and empty.targets.tolist() == [[0, 0]] and empty.lengths_N[0] <= 32


def test_what_cannot_be_encoded():
    made = tokenizer('unigram')
    with pytest.raises(ValueError, match='max_length is 4'):
        encode(PAIRS, [], made, 4)
    with pytest.raises(ValueError, match='must be of TaggedSentence'):
        encode(TAGS, [TextExample('0', 'a', None, 'yes')], made, 16)
    with pytest.raises(ValueError, match='stride is 0'):
        encode(SPANS, [Question('q', 'a', 'b', ())], made, 16, stride=0)
