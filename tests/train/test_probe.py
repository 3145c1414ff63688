import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model import mlm
from tests.train.heldout_case import (
    LENGTH,
    MODEL,
    VOCABULARY,
    cohort_of,
    one_device,
    params_of,
    random_split,
    split_of,
    stacked,
    store_of,
)
from train.heldout_rows import as_rows, chosen_paragraphs
from train.probe import Probe, accuracy, majority, make_features, split_documents
from train.replicas import ReplicaProgram


def probed(split, params_R, arms=(('a', 0, {}),), wanted=200):
    probe = Probe(store_of(split), cohort_of(*arms), LENGTH, one_device(), wanted)
    return probe.majority() + probe.figures(params_R, 1, 10), probe.reason


def two_topics(documents: int):
    """Documents whose label can be read off their tokens, four paragraphs each."""
    rng = np.random.default_rng(0)
    low, high = np.arange(5, 30), np.arange(30, 55)
    made = [[rng.choice((low, high)[i % 2], 12).tolist() for _ in range(4)] for i in range(documents)]
    return split_of(made, [('19th', '20th')[i % 2] for i in range(documents)])


@settings(deadline=None)
@given(st.lists(st.sampled_from(['', '18th', '19th', '20th']), max_size=30))
def test_documents_are_split_with_each_label_on_both_sides(labels):
    learn, test = split_documents(labels)
    assert sorted([*learn, *test]) == [index for index, label in enumerate(labels) if label]
    assert list(learn) == sorted(learn) and list(test) == sorted(test)
    for label in set(labels) - {''}:
        sides = [sum(labels[index] == label for index in side) for side in (learn, test)]
        assert sides[0] >= 1
        assert sides[1] >= 1 or labels.count(label) == 1


def test_a_label_in_the_features_is_found_and_an_absent_one_is_not():
    rng = np.random.default_rng(0)
    label_P = np.array(['a', 'b', 'c'])[rng.integers(0, 3, 600)]
    tested_P = np.arange(600) >= 400
    noise_PxD = rng.normal(size=(600, 8))
    planted_PxD = noise_PxD.copy()
    planted_PxD[:, 0] = 1e-3 * (label_P == 'a') + 1e-5 * noise_PxD[:, 0]  # small: standardised all the same
    planted_PxD[:, 1] = 500 * (label_P == 'b') + noise_PxD[:, 1]
    assert accuracy(planted_PxD, label_P, tested_P) == 100
    assert accuracy(noise_PxD, label_P, tested_P) < 50
    misled = np.where(tested_P, 'c', label_P)
    assert accuracy(planted_PxD, misled, tested_P) == pytest.approx(100 * np.mean(label_P[tested_P] == 'c'))


def test_majority_is_the_commonest_label_of_the_learning_side():
    label_P = np.array(['a', 'b', 'b', 'b', 'a', 'a', 'a', 'a'])
    assert majority(label_P, np.array([0, 0, 0, 1, 1, 1, 1, 1], bool)) == 20


def test_features_are_the_mean_over_the_paragraphs_own_tokens():
    params = params_of(0, 3.0)
    texts = [np.arange(5, 5 + size) for size in (3, 8, LENGTH - 2, LENGTH + 9)]
    rows_NxL = as_rows(texts, VOCABULARY, LENGTH)
    program = ReplicaProgram(make_features(cohort_of(('a', 0, {})).config, VOCABULARY), one_device(), 3)
    features_NxD = program(stacked(params), (rows_NxL,))[0]
    for text, features_D in zip(texts, features_NxD, strict=True):
        text = text[: LENGTH - 2]
        row = np.array([[VOCABULARY.cls, *text, VOCABULARY.sep]], np.int32)  # without padding
        hidden_LxD = np.asarray(mlm.encode(params, MODEL, row, np.ones_like(row)))[0]
        assert features_D == pytest.approx(hidden_LxD[1 : 1 + len(text)].mean(axis=0), abs=1e-5)


def test_every_replica_is_probed_on_held_out_documents():
    arms = [('a', 0, {}), ('b', 3, {})]
    found, reason = probed(two_topics(36), stacked(params_of(0), params_of(1)), arms)
    assert reason == ''
    assert [(each['metric'], each['arm'], each['seed'], each['task']) for each in found] == [
        ('probe_majority', '', None, 'century'),
        ('probe', 'a', 0, 'century'),
        ('probe', 'b', 3, 'century'),
    ]
    assert found[0]['value'] == 50
    assert min(found[1]['value'], found[2]['value']) > 80, 'random features still tell the two vocabularies apart'


def test_no_paragraph_of_a_tested_document_is_learnt_from():
    """Each document repeats a token of its own, labels at random: only a leak would do better than chance."""
    rng = np.random.default_rng(1)
    labels = [str(label) for label in rng.integers(0, 2, 40)]
    split = split_of([[[5 + i] * 10 for _ in range(5)] for i in range(40)], labels)
    found, _ = probed(split, stacked(params_of(0)))
    assert found[1]['value'] < 80
    learn, test = split_documents(labels)
    _, owners = chosen_paragraphs(split, np.concatenate([learn, test]), 200)
    assert len(owners) == 200 and set(owners) == set(learn) | set(test)


@pytest.mark.parametrize(
    ('labels', 'wanted', 'reason'),
    [
        ([''] * 6, 200, 'two labels'),
        (['19th'] * 6, 200, 'two labels'),
        (['19th', '20th', '', '', '', ''], 200, 'no label has two'),
        (['19th', '20th'] * 3, 1, 'too few'),
    ],
)
def test_without_a_probe_there_is_a_reason(labels, wanted, reason):
    found, said = probed(random_split(3, 6, labels), stacked(params_of(0)), wanted=wanted)
    assert found == [] and reason in said
