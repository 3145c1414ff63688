"""Sentences with a tag a word, from files in CoNLL's form: a word and its tag a line, a blank line after a sentence."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from data.errors import UserError
from data.tasks.config import TaskConfig
from data.tasks.files import at_lines, find_all, read_lines
from data.tasks.task import TaggedSentence, Task

METRICS = ('entity_f1', 'token_accuracy')
_STEMS = {
    'train': ('train', 'eng.train'),
    'dev': ('dev', 'valid', 'validation', 'testa', 'eng.testa'),
    'test': ('test', 'testb', 'eng.testb'),
}
FILES = {
    split: tuple(f'{stem}{suffix}' for stem in stems for suffix in ('.txt', '.conll', '.bio', '.tsv', ''))
    for split, stems in _STEMS.items()
}
_TAG = re.compile(r'O|[BI]-(?P<type>.+)')
_DOCUMENT = '-DOCSTART-'


def load_tagging(config: TaskConfig) -> Task:
    """A task of the files train, dev and test, or of one file alone.

    Raises:
      UserError: a file is missing or faulty, train has no tags, or a file holds a tag that train does not.
    """
    path = Path(config.data_dir)
    paths = {'train': path} if path.is_file() else find_all(path, FILES, config.task)
    splits, notes = {}, []
    for split, file in paths.items():
        splits[split], found = read_conll(file, config.label, config.encoding)
        notes += found
        bare = all(sentence.tags is None for sentence in splits[split])
        if bare and split == 'train':
            raise UserError(f'{file}: has words alone, so nothing can be learnt from it: tags are its last column')
        if bare and split == 'dev':
            notes.append(f'{file}: has words alone, so nothing is scored on it')
    return tagging_task(config.task, splits, notes)


def tagging_task(name: str, splits: dict[str, list[TaggedSentence]], notes: Iterable[str]) -> Task:
    """A task whose tags are O, and B- and I- of every type in its training sentences.

    Raises:
      UserError: training has no tag but O.
    """
    known = splits.get('train') or [sentence for each in splits.values() for sentence in each]
    types = sorted({tag[2:] for sentence in known for tag in sentence.tags or () if tag != 'O'})
    if not types and 'train' in splits:
        raise UserError(f'task {name}: training has no tag but O: is it the column? See --label')
    labels = ('O', *(f'{mark}-{kind}' for kind in types for mark in 'BI'))
    return Task(name, 'tagging', labels, METRICS, splits, notes=tuple(notes))


def read_conll(path: Path, column: str, encoding: str) -> tuple[list[TaggedSentence], list[str]]:
    """The sentences of a file, and notes. Fields stand between spaces or tabs; the first is the word.

    IOB1, in which I- begins an entity that does not follow another of its type, is read as IOB2. -DOCSTART- lines begin
    documents. A file of words alone has no tags.

    Args:
      column: the tag's, by number from 1; '' for the last.

    Raises:
      UserError: a tag is not O, B-TYPE or I-TYPE, or there is no sentence.
    """
    if column and (not (column.isascii() and column.isdigit()) or int(column) < 2):
        raise UserError(f'--label {column}: tags go by the number of their column, 2 or more')
    sentences, ragged, counts = [], [], Counter()
    width, document, lines = 0, 0, read_lines(path, encoding)
    words, tags, whole = [], [], True
    for number, line in enumerate([*lines, ''], 1):
        # Not str.split() alone: a word may hold a no-break space.
        fields = [field for field in line.replace('\t', ' ').split(' ') if field] or ['']
        if fields[0] not in ('', _DOCUMENT):
            width = width or len(fields)
            if len(fields) != width:
                ragged.append(number)
                whole = False
                continue
            words.append(fields[0])
            tags.append(_tag(path, number, fields, column) if width > 1 else '')
            continue
        if words and whole:
            fixed = _iob2(tags) if width > 1 else None
            counts['changed'] += fixed is not None and fixed != tuple(tags)
            counts[document] += 1
            sentences.append(TaggedSentence(str(len(sentences)), tuple(words), fixed, f'{path.name}:{document}'))
        document += fields[0] == _DOCUMENT
        words, tags, whole = [], [], True
    notes = []
    if ragged:
        notes.append(f'{path}: left out sentences: not {width} fields at {at_lines(ragged)}')
    if counts['changed']:
        notes.append(f'{path}: the tags of {counts["changed"]:,} sentences were not IOB2, and are read as such')
    if not sentences:
        raise UserError(f'{path}: has no sentence{"; " if notes else ""}{"; ".join(notes)}')
    if not document:  # no lines that begin documents: a sentence is as good as one
        sentences = [TaggedSentence(each.id, each.words, each.tags) for each in sentences]
    return sentences, notes


def _tag(path: Path, number: int, fields: Sequence[str], column: str) -> str:
    if column and int(column) > len(fields):
        raise UserError(f'{path}:{number}: has no column {column}, only {len(fields)} fields: see --label')
    tag = fields[int(column) - 1 if column else -1]
    if not _TAG.fullmatch(tag):
        raise UserError(f'{path}:{number}: tag {tag[:40]!r} is not O, B-TYPE or I-TYPE (is it the column? see --label)')
    return tag


def _iob2(tags: Sequence[str]) -> tuple[str, ...]:
    """An entity begins with B-: where I- follows no tag of its type, it is one that begins."""
    before = ['O', *tags]
    return tuple(
        f'B-{tag[2:]}' if tag[0] == 'I' and last[1:] != tag[1:] else tag
        for last, tag in zip(before, tags, strict=False)
    )
