"""Metrics against scikit-learn, scipy and conlleval's counting; a copier scores 100; batches change nothing."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from data.tasks.answers import best_spans, texts
from data.tasks.baselines import is_degenerate, majority
from data.tasks.buckets import evaluation_batches, scatter
from data.tasks.config import TaskConfig
from data.tasks.features import encode
from data.tasks.glue import GLUE
from data.tasks.registry import load_task
from data.tasks.scores import scores
from data.tasks.task import Answer, Question, TaggedSentence, Task, TextExample
from tests.data.tasks.task_files import CONLL, CONTEXT, PARAGRAPHS, answer, write, write_glue, write_squad
from tests.data.tasks.test_task_features import tokenizer

BINARY = Task('b', 'classification', ('zero', 'one'), ('accuracy', 'f1', 'macro_f1', 'matthews'), {})
THREE = Task('t', 'classification', ('a', 'b', 'c'), ('accuracy', 'macro_f1', 'matthews'), {})
NUMBERS = Task('n', 'regression', (), ('pearson', 'spearman'), {})
TAGS = Task('g', 'tagging', ('O', 'B-X', 'I-X', 'B-Y', 'I-Y'), ('entity_f1', 'token_accuracy'), {})
SQUAD1 = Task('squad1', 'span', (), ('f1', 'exact_match'), {})
SQUAD2 = Task('squad2', 'span', (), ('f1', 'exact_match'), {}, no_answer=True)


def labelled(labels):
    return [TextExample(str(i), 'x', None, label) for i, label in enumerate(labels)]


def gold_of(task, examples):
    if task.kind == 'span':
        return [example.answers[0].text if example.answers else '' for example in examples]
    return [example.tags if task.kind == 'tagging' else example.label for example in examples]


def test_a_copier_of_the_gold_labels_scores_100_on_every_task(tmp_path):
    write_glue(tmp_path / 'glue')
    write(tmp_path / 'ner' / 'eng.train', CONLL)
    impossible = [*PARAGRAPHS, ('D', 'None.', [('d1', 'Why?', None), ('d2', 'The?', [('None', 0)])])]
    write_squad(tmp_path / 'qa' / 'train.json', impossible)
    write_squad(tmp_path / 'qa1' / 'train.json')
    write(tmp_path / 'own' / 'train.tsv', 't\tl\na\tx\nb\ty\nc\tz\nd\tx')
    configs = [TaskConfig(name, str(tmp_path / 'glue')) for name in GLUE]
    configs += [TaskConfig('tagging', str(tmp_path / 'ner')), TaskConfig('squad2', str(tmp_path / 'qa'))]
    configs += [TaskConfig('squad1', str(tmp_path / 'qa1'))]
    configs += [TaskConfig('table', str(tmp_path / 'own'), 't', '', 'l'), TaskConfig('corpus:century')]
    from data.config import DataConfig

    for config in configs:
        task = load_task(config, DataConfig())
        for split in ('train', 'dev', 'dev_mismatched'):
            examples = task.splits.get(split, ())
            if len({str(gold) for gold in gold_of(task, examples)}) < 2:
                continue  # a correlation needs two values
            found = scores(task, gold_of(task, examples), examples)
            assert set(found) == set(task.metrics) and task.primary == task.metrics[0]
            assert all(math.isclose(value, 100) for value in found.values()), (config.task, split, found)


@pytest.mark.parametrize('task', [BINARY, THREE])
def test_classes_against_counting(task):
    @given(st.lists(st.tuples(st.sampled_from(task.labels), st.sampled_from(task.labels)), min_size=1, max_size=30))
    @settings(deadline=None, max_examples=40)
    def check(pairs):
        gold, predicted = [list(side) for side in zip(*pairs, strict=True)]
        found = scores(task, predicted, labelled(gold))

        def f1(label):
            both = sum(g == p == label for g, p in pairs)
            either = sum(g == label for g in gold) + sum(p == label for p in predicted)
            return 2 * both / either if either else 0.0

        present = sorted(set(gold) | set(predicted))
        assert found['accuracy'] == pytest.approx(100 * np.mean([g == p for g, p in pairs]))
        assert found['macro_f1'] == pytest.approx(100 * np.mean([f1(label) for label in present]))
        if task is BINARY:
            assert found['f1'] == pytest.approx(100 * f1('one'))
            tp, tn = sum(g == p == 'one' for g, p in pairs), sum(g == p == 'zero' for g, p in pairs)
            fp, fn = predicted.count('one') - tp, gold.count('one') - tp
            product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
            expected = (tp * tn - fp * fn) / math.sqrt(product) if product else 0.0
            assert found['matthews'] == pytest.approx(100 * expected)
            assert found['f1'] == pytest.approx(
                100 * sklearn.metrics.f1_score(gold, predicted, pos_label='one', zero_division=0)
                if 'one' in present else 0.0
            )  # fmt: skip

    check()


def test_labels_go_by_name_and_not_by_place():
    for task in (BINARY, Task('b', 'classification', ('one', 'zero'), BINARY.metrics, {})):
        found = scores(task, ['one', 'zero', 'zero'], labelled(['one', 'one', 'zero']))
        assert found['accuracy'] == pytest.approx(200 / 3)
        positive = task.labels[1]
        assert found['f1'] == pytest.approx(100 * 2 / 3), positive


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(-1e3, 1e3)), min_size=2, max_size=20))
@settings(deadline=None)
def test_correlations_against_their_definitions(pairs):
    gold, predicted = (np.round(np.array(side), 3) for side in zip(*pairs, strict=True))

    def pearson(a, b):
        a, b = a - a.mean(), b - b.mean()
        scale = math.sqrt((a**2).sum() * (b**2).sum())
        return (a * b).sum() / scale if scale else 0.0

    found = scores(NUMBERS, predicted, labelled(gold.tolist()))
    if len(set(gold)) < 2 or len(set(predicted)) < 2:
        assert found == {'pearson': 0, 'spearman': 0}
        return
    assert found['pearson'] == pytest.approx(100 * pearson(predicted, gold), abs=1e-5)
    ranks = [scipy.stats.rankdata(side) for side in (predicted, gold)]  # of ties the mean rank
    assert found['spearman'] == pytest.approx(100 * pearson(*ranks), abs=1e-6)


def entities(tags):
    """conlleval's: an I- after another type or O begins an entity too."""
    found, open_at = set(), None
    for place, tag in enumerate([*tags, 'O']):
        before = tags[place - 1] if place else 'O'
        begins = tag != 'O' and (tag[0] == 'B' or before == 'O' or before[2:] != tag[2:])
        if open_at is not None and (tag == 'O' or begins):
            found.add((open_at, place, before[2:]))
            open_at = None
        if begins:
            open_at = place
    return found


@given(
    st.lists(st.lists(st.tuples(*[st.sampled_from(TAGS.labels)] * 2), min_size=1, max_size=6), min_size=1, max_size=4)
)
@settings(deadline=None)
def test_entities_against_conlleval(sentences):
    gold = [[pair[0] for pair in sentence] for sentence in sentences]
    predicted = [[pair[1] for pair in sentence] for sentence in sentences]
    examples = [TaggedSentence(str(i), tuple('x' * len(tags)), tuple(tags)) for i, tags in enumerate(gold)]
    right = sum(len(entities(g) & entities(p)) for g, p in zip(gold, predicted, strict=True))
    total = sum(len(entities(tags)) for tags in [*gold, *predicted])
    found = scores(TAGS, predicted, examples)
    assert found['entity_f1'] == pytest.approx(100 * 2 * right / total if total else 0)
    same = [g == p for g, p in zip(itertools.chain(*gold), itertools.chain(*predicted), strict=True)]
    assert found['token_accuracy'] == pytest.approx(100 * np.mean(same))


def test_what_cannot_be_scored():
    for task, predictions, examples, message in (
        (BINARY, ['one'], [], '1 predictions for 0 examples'),
        (BINARY, [], [], '0 predictions'),
        (BINARY, ['one'], labelled(['one', 'one']), '1 predictions for 2'),
        (BINARY, ['one'], labelled([None]), 'kept back'),
        (TAGS, [['O']], [TaggedSentence('0', ('a', 'b'), ('O', 'O'))], 'more or fewer predicted tags'),
        (SQUAD1, ['a'], [Question('q', '?', '', ())], 'no answer to score against'),
    ):
        with pytest.raises(ValueError, match=message):
            scores(task, predictions, examples)


@pytest.mark.parametrize('predicted', [[math.nan] * 3, [1.0, math.nan, 3.0], [1.0, 2.0, math.inf], [-math.inf] * 3])
def test_numbers_that_are_not_finite_are_as_good_as_none(predicted):
    gold = labelled([1.0, 2.0, 3.0])
    found = scores(NUMBERS, predicted, gold)
    assert found == {'pearson': 0, 'spearman': 0}
    assert is_degenerate(NUMBERS, predicted, found, majority(NUMBERS, gold, gold))


def test_trivial_predictions_and_runs_no_better():
    train, dev = labelled(['one'] * 6 + ['zero'] * 4), labelled(['one'] * 5 + ['zero'] * 5)
    trivial = majority(BINARY, train, dev)
    assert trivial == pytest.approx({'accuracy': 50, 'f1': 200 / 3, 'macro_f1': 100 / 3, 'matthews': 0})
    tied = labelled(['zero', 'one'])
    assert majority(BINARY, tied, dev)['f1'] == pytest.approx(200 / 3)  # 'one' comes first by name
    numbers = labelled([1.0, 2.0, 4.0])
    assert majority(NUMBERS, numbers, numbers) == {'pearson': 0, 'spearman': 0}
    tagged = [TaggedSentence('0', ('a', 'b'), ('B-X', 'O'))]
    assert majority(TAGS, tagged, tagged) == {'entity_f1': 0, 'token_accuracy': 50}
    none = [Question('0', '?', 'x', (), True), Question('1', '?', 'x', (Answer('x', 0),))]
    assert majority(SQUAD2, none, none) == {'f1': 50, 'exact_match': 50}

    def degenerate(predictions, task=BINARY, examples=dev, base=trivial):
        return is_degenerate(task, predictions, scores(task, predictions, examples), base)

    assert degenerate(['one'] * 10) and degenerate(['zero'] * 10)
    assert degenerate(['zero'] * 5 + ['one'] * 5)  # worse than either
    assert not degenerate(['one'] * 5 + ['zero'] * 5)
    assert degenerate([['O', 'O']], TAGS, tagged, majority(TAGS, tagged, tagged))
    assert not degenerate([['B-X', 'O']], TAGS, tagged, majority(TAGS, tagged, tagged))


def evaluated(task, examples, batch_size):
    """Scores of a 'model' that sees a batch's tokens alone: figures made of each row's valid tokens."""
    features = encode(task, examples, tokenizer('cased'), 48, stride=16)
    per_token = task.kind in ('tagging', 'span')
    out = np.zeros((len(features.tokens_T) if per_token else len(features), 3))
    for batch in evaluation_batches(features, batch_size):
        mixed_BxL = (batch.tokens_BxL * 7919 + np.arange(batch.tokens_BxL.shape[1]) * 104729) % 1009
        outputs = np.stack([mixed_BxL % modulus for modulus in (97, 101, 103)], axis=-1) / 100
        if not per_token:
            outputs = (outputs * batch.document_ids_BxL[..., None]).sum(axis=1) % 1
        scatter(features, batch, outputs, out)
    if task.kind == 'span':
        return scores(task, texts(best_spans(features, examples, out[:, 0], out[:, 1])), examples)
    if task.kind == 'tagging':
        firsts = np.flatnonzero(features.words_T >= 0)
        tags = iter([task.labels[number] for number in out[firsts].argmax(axis=1)])
        return scores(task, [[next(tags) for _ in example.words] for example in examples], examples)
    if task.kind == 'regression':
        return scores(task, out[:, 0], examples)
    return scores(task, [task.labels[i] for i in out[:, : len(task.labels)].argmax(axis=1)], examples)


def some(task, count):
    random = np.random.default_rng(1)
    words = CONTEXT.split()

    def text():
        return ' '.join(random.choice(words, random.integers(1, 30)))

    if task.kind == 'span':
        return [Question(str(i), text(), f'{text()} {CONTEXT}', (Answer(*answer('winners')),)) for i in range(count)]
    if task.kind == 'tagging':
        sentences = [tuple(text().split()) for _ in range(count)]
        return [TaggedSentence(str(i), s, tuple(random.choice(task.labels, len(s)))) for i, s in enumerate(sentences)]
    labels = random.choice(task.labels, count).tolist() if task.labels else random.uniform(0, 5, count).tolist()
    return [TextExample(str(i), text(), text() if i % 2 else None, label) for i, label in enumerate(labels)]


@pytest.mark.parametrize('task', [BINARY, THREE, NUMBERS, TAGS, SQUAD1], ids=lambda task: task.name)
def test_a_metric_does_not_change_with_the_batch_size(task):
    examples = some(task, 21)
    rows = len(encode(task, examples, tokenizer('cased'), 48, stride=16))
    found = [evaluated(task, examples, size) for size in (1, 3, 8, rows, rows + 1)]
    assert all(each == found[0] for each in found) and found[0][task.primary] != 0
