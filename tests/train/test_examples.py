import json

import numpy as np
import pytest

from tests.train.heldout_case import (
    LENGTH,
    VOCABULARY,
    LetterTokenizer,
    cohort_of,
    log_probs,
    one_device,
    params_of,
    random_split,
    split_of,
    stacked,
    store_of,
)
from train.examples import example_records, sentences

PARAMS = [params_of(0, 3.0), params_of(1, 3.0)]
TOKENIZER = LetterTokenizer()


@pytest.fixture(scope='module')
def records():
    cohort = cohort_of(('a', 0, {}), ('b', 4, dict(corruption_rate=0.9)), examples=3)
    return example_records(store_of(random_split(1, 20)), cohort, stacked(*PARAMS), LENGTH, one_device())


def test_all_replicas_show_the_same_masked_sentences(records):
    assert len(records) == 2 * 3 * 2
    assert {record['kind'] for record in records} == {'example'}
    shown = {}
    for record in records:
        key = (record['rate'], record['sentence'])
        assert shown.setdefault(key, (record['pieces'], record['masked'])) == (record['pieces'], record['masked'])
    assert len(shown) == 2 * 3
    for sentence in range(3):
        assert set(shown[0.15, sentence][1]) < set(shown[0.4, sentence][1])
        assert shown[0.15, sentence][0] == shown[0.4, sentence][0]


def test_guesses_are_the_three_likeliest_pieces_with_their_probabilities(records):
    texts = sentences(random_split(1, 20), TOKENIZER, LENGTH, 3)
    for record in records:
        text = texts[record['sentence']]
        assert record['pieces'] == TOKENIZER.pieces(text)
        assert record['masked'] == sorted(record['masked']) and record['masked'][-1] < len(text)
        assert list(record['guesses']) == [str(position) for position in record['masked']]
        row = np.array([VOCABULARY.cls, *text, VOCABULARY.sep])
        row[1 + np.array(record['masked'])] = VOCABULARY.mask
        log_probs_LxV = log_probs(PARAMS['ab'.index(record['arm'])], row)
        for position, guesses in record['guesses'].items():
            best = np.argsort(-log_probs_LxV[1 + int(position)])[:3]
            assert [piece for piece, _ in guesses] == TOKENIZER.pieces(best)
            probabilities = [probability for _, probability in guesses]
            assert probabilities == pytest.approx(np.exp(log_probs_LxV[1 + int(position), best]), abs=1e-4)


def test_records_survive_json(records):
    assert json.loads(json.dumps(records)) == records


def test_a_sentence_ends_at_a_full_stop_within_the_paragraph():
    stop = 7  # p7.
    split = split_of([[[8] * 20 + [stop] + [8] * 20, [8] * 50], [[8] * 4 + [stop, 10] * 2]])
    found = sentences(split, TOKENIZER, 64, 5)
    assert [list(text) for text in found] == [[8] * 20 + [stop]]
    assert sentences(split, TOKENIZER, 64, 0) == []


def test_a_text_without_full_stops_shows_the_first_pieces():
    found = sentences(split_of([[[8] * 50, [10] * 12]]), TOKENIZER, 64, 5)
    assert [len(text) for text in found] == [40, 12]


def test_nothing_to_show():
    cohort = cohort_of(('a', 0, {}), examples=0)
    assert example_records(store_of(random_split(1, 20)), cohort, stacked(PARAMS[0]), LENGTH, one_device()) == []
