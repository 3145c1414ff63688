"""Which label a paragraph's document has: a task from the corpus itself, of documents held out of pretraining.

Of each label every third document is tested on, the others are learnt from, as for the frozen probe.
"""

from data.config import DataConfig
from data.errors import UserError
from data.heldout import heldout_documents
from data.splits import split_documents
from data.tasks.files import SHOWN
from data.tasks.own import text_task
from data.tasks.task import Task, TextExample

SHORTEST = 8
"""Words below which a paragraph is a heading or a signature, and is left out."""


def load_corpus_task(name: str, corpus: DataConfig) -> Task:
    """The task corpus:LABEL. LABEL is century or party (sotu), or label (JSON lines and tfds: that have one).

    A paragraph that comes twice is taken once, where it comes first. What is left for training may then lack a label:
    its paragraphs are not tested on either, and a note says how many.

    Raises:
      UserError: the corpus has no such label, or too few held-out documents of it.
    """
    label = name.removeprefix('corpus:')
    documents = [(document.labels, blocks) for document, blocks in heldout_documents(corpus)]
    known = sorted({key for labels, _ in documents for key in labels})
    if label not in known:
        has = f'it has {", ".join(known)}' if known else 'it has none'
        raise UserError(f'--task {name}: the corpus {corpus.corpus} has no label {label}; {has}: leave the task out')
    learn = set(split_documents([labels.get(label, '') for labels, _ in documents])[0].tolist())
    splits: dict[str, list[TextExample]] = {'train': [], 'dev': []}
    seen: set[str] = set()
    for number, (labels, blocks) in enumerate(documents):
        for block in blocks if labels.get(label) else ():
            if len(block.split()) >= SHORTEST and block not in seen:
                seen.add(block)
                split = 'train' if number in learn else 'dev'
                splits[split].append(TextExample(f'{number}:{len(seen)}', block, None, labels[label], str(number)))
    learnt, notes = {example.label for example in splits['train']}, []
    unlearnt = [example.label for example in splits['dev'] if example.label not in learnt]
    if unlearnt:
        notes.append(
            f'{name}: left out {len(unlearnt):,} of {len(splits["dev"]):,} dev paragraphs, whose label no training '
            f'paragraph has: {", ".join(sorted(set(unlearnt))[:SHOWN])}'
        )
        splits['dev'] = [example for example in splits['dev'] if example.label in learnt]
    if not splits['dev']:
        raise UserError(f'--task {name}: no {label} has two held-out documents with a paragraph: hold out more')
    return text_task(name, 'classification', splits, notes)
