"""What word counts alone tell of a label: TF-IDF with logistic regression."""

from collections.abc import Sequence

from data.tasks.scores import class_scores
from data.tasks.task import Task, TextExample

WORD = r'\w+|[^\w\s]'
"""scikit-learn's own pattern leaves out words of one letter, and with them whole texts in some scripts."""


def tfidf_scores(task: Task, splits: Sequence[str]) -> dict[str, dict[str, float]]:
    """Split -> scores, in percent, of a classifier fitted on 'train'; {} for tasks that are no classification.

    Of a pair of sentences the words of each are counted apart. scikit-learn's defaults but for sublinear term
    frequencies; nothing is tuned.
    """
    if task.kind != 'classification':
        return {}
    # Imported here: it takes a second, which a run that is only being taken up again need not spend.
    from scipy.sparse import hstack
    from sklearn.dummy import DummyClassifier
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    sides = [_first] if task.examples('train')[0].second is None else [_first, _second]
    counters = [TfidfVectorizer(token_pattern=WORD, sublinear_tf=True) for _ in sides]
    train = task.examples('train')
    columns = [
        counter.fit_transform([side(example) for example in train])
        for counter, side in zip(counters, sides, strict=True)
    ]
    labels = [example.label for example in train]
    # Of one label alone there is no regression.
    classifier = LogisticRegression(max_iter=1000) if len(set(labels)) > 1 else DummyClassifier()
    classifier.fit(hstack(columns).tocsr(), labels)
    found = {}
    for split in splits:
        examples = task.examples(split)
        columns = [
            counter.transform([side(example) for example in examples])
            for counter, side in zip(counters, sides, strict=True)
        ]
        guesses = [str(label) for label in classifier.predict(hstack(columns).tocsr())]
        found[split] = class_scores(task.metrics, guesses, [example.label for example in examples], task.labels)
    return found


def _first(example: TextExample) -> str:
    return example.first


def _second(example: TextExample) -> str:
    return example.second or ''
