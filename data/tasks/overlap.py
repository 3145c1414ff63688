"""Examples that stand in train and in another split, too, equal in texts and label. They make scores too good."""

import dataclasses
from collections.abc import Iterable

from data.tasks.task import Example, TaggedSentence, Task, TextExample


def with_note(task: Task) -> Task:
    """The task with one note, if there is anything to note: how many examples of each other split stand in train."""
    others = [split for split in task.splits if split != 'train']
    found = {split: _in_train(task, task.examples(split)) for split in others}
    told = [f'{sum(each):,} of {len(each):,} examples of {split}' for split, each in found.items() if any(each)]
    if not told:
        return task
    return _noted(task, f'{task.name}: {", ".join(told)} stand among the {len(task.splits["train"]):,} of train, too')


def without_those_of(task: Task, split: str) -> Task:
    """The task without the training examples that stand in `split`, too, and with a note that says how many."""
    if not {'train', split} <= set(task.splits):
        return task
    train, there = task.examples('train'), {_content(example) for example in task.examples(split)}
    kept = [example for example in train if _content(example) not in there]
    if len(kept) == len(train):
        return task
    note = (
        f'{task.name}: left out {len(train) - len(kept):,} of {len(train):,} training examples, which stand in {split}'
    )
    return _noted(dataclasses.replace(task, splits={**task.splits, 'train': kept}), note)


def _in_train(task: Task, examples: Iterable[Example]) -> list[bool]:
    contents = [_content(example) for example in examples]
    # The set is of the smaller side: train may be large.
    wanted = set(contents)
    there = {content for example in task.splits.get('train', ()) if (content := _content(example)) in wanted}
    return [content in there for content in contents]


def _content(example: Example) -> tuple:
    """All of an example but its id and its document."""
    if isinstance(example, TextExample):
        return example.first, example.second, example.label
    if isinstance(example, TaggedSentence):
        return example.words, example.tags
    return example.question, example.context, example.answers, example.impossible


def _noted(task: Task, note: str) -> Task:
    return dataclasses.replace(task, notes=(*task.notes, note))
