"""Parts of a task: examples held out of training by document, and fewer of them."""

import dataclasses
import hashlib

from data.errors import UserError
from data.tasks.task import Example, Question, TaggedSentence, Task


def hold_out(task: Task, share: float, name: str) -> Task:
    """The task with a new split of about `share` of its training examples, which leave 'train'.

    What belongs together stays together: the examples of a document; without documents, pairs with the same first
    sentence. Which are held out depends on the document's name, or on that sentence, alone: it is the same for every
    arm and seed.

    Raises:
      UserError: all training examples belong together.
    """
    train = task.examples('train')
    groups = [_group(example) for example in train]
    ranked = sorted(
        set(groups), key=lambda group: hashlib.sha256(f'held out\n{group}'.encode('utf-8', 'surrogatepass')).digest()
    )
    if len(ranked) < 2:
        raise UserError(f'task {task.name}: no part of its training data can be held out, as it is all of one document')
    held = set(ranked[: min(max(1, round(share * len(ranked))), len(ranked) - 1)])
    parts = {
        name: [example for example, group in zip(train, groups, strict=True) if group in held],
        'train': [example for example, group in zip(train, groups, strict=True) if group not in held],
    }
    return dataclasses.replace(task, splits={**task.splits, **parts})


def limited(task: Task, split: str, count: int) -> Task:
    """The task with at most `count` examples in a split, in their order.

    Which, depends on the examples alone: on their text and label, and on their id, which may be the row's number in
    its file.
    """
    examples = task.examples(split)
    if len(examples) <= count:
        return task
    digests = [hashlib.sha256(f'limited\n{example!r}'.encode()).digest() for example in examples]
    kept = sorted(sorted(range(len(examples)), key=digests.__getitem__)[:count])
    return dataclasses.replace(task, splits={**task.splits, split: [examples[place] for place in kept]})


def _group(example: Example) -> str:
    if example.document:
        return example.document
    if isinstance(example, TaggedSentence):
        return ' '.join(example.words)
    return example.context if isinstance(example, Question) else example.first
