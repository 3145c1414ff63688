"""GLUE's nine tasks in the files that its authors give out (Wang et al. 2019)."""

from dataclasses import dataclass, field
from pathlib import Path

from data.errors import UserError
from data.tasks import adversarial
from data.tasks.config import TaskConfig
from data.tasks.files import find, find_all
from data.tasks.overlap import without_those_of
from data.tasks.table import read_table
from data.tasks.task import Kind, Task
from data.tasks.texts import examples

_FILES = {'train': ('train.tsv', 'train_subset.tsv'), 'dev': ('dev.tsv',), 'test': ('test.tsv',)}


@dataclass(frozen=True)
class Glue:
    """How a task of GLUE is written down."""

    folder: str
    """As its folder is called, and its file in a submission."""
    metrics: tuple[str, ...]
    first: str
    second: str
    label: str
    written: dict[str, str]
    """Label -> how files and submissions write it. The order is that of TFDS's and the Hub's numbers."""
    bare: tuple[str, ...] = ()
    """The columns of those of its files that have no header."""
    files: dict[str, tuple[str, ...]] = field(default_factory=lambda: _FILES)
    kind: Kind = 'classification'

    @property
    def names(self) -> dict[str, str]:
        """As written, or by name -> name."""
        return {name: name for name in self.written} | {text: name for name, text in self.written.items()}


_ENTAILED = {'entailment': 'entailment', 'not_entailment': 'not_entailment'}
_INFERENCE = {name: name for name in ('entailment', 'neutral', 'contradiction')}
GLUE = {
    'cola': Glue(
        'CoLA', ('matthews', 'accuracy'), 'sentence', '', 'label', {'unacceptable': '0', 'acceptable': '1'},
        bare=('source', 'label', 'mark', 'sentence'),
    ),
    'sst2': Glue('SST-2', ('accuracy',), 'sentence', '', 'label', {'negative': '0', 'positive': '1'}),
    'mrpc': Glue(
        'MRPC', ('f1', 'accuracy'), '#1 String', '#2 String', 'Quality', {'not_equivalent': '0', 'equivalent': '1'},
        # Also by the names that its authors gave its files.
        files={
            'train': ('train.tsv', 'msr_paraphrase_train.txt'),
            'dev': ('dev.tsv',),
            'test': ('test.tsv', 'msr_paraphrase_test.txt'),
        },
    ),
    'stsb': Glue('STS-B', ('pearson', 'spearman'), 'sentence1', 'sentence2', 'score', {}, kind='regression'),
    'qqp': Glue(
        'QQP', ('f1', 'accuracy'), 'question1', 'question2', 'is_duplicate', {'not_duplicate': '0', 'duplicate': '1'},
        bare=('id', 'qid1', 'qid2', 'question1', 'question2', 'is_duplicate'),
    ),
    'mnli': Glue(
        'MNLI', ('accuracy',), 'sentence1', 'sentence2', 'gold_label', _INFERENCE,
        files={
            'train': ('train.tsv',),
            'dev': ('dev_matched.tsv',),
            'dev_mismatched': ('dev_mismatched.tsv',),
            'test': ('test_matched.tsv',),
            'test_mismatched': ('test_mismatched.tsv',),
            'test_diagnostic': ('../diagnostic/diagnostic.tsv',),  # AX, which takes a model of MNLI
        },
    ),
    'qnli': Glue('QNLI', ('accuracy',), 'question', 'sentence', 'label', _ENTAILED),
    'rte': Glue('RTE', ('accuracy',), 'sentence1', 'sentence2', 'label', _ENTAILED),
    'wnli': Glue(
        'WNLI', ('accuracy',), 'sentence1', 'sentence2', 'label', {'not_entailment': '0', 'entailment': '1'},
    ),
}  # fmt: skip


def load_glue(config: TaskConfig) -> Task:
    """A task from its folder, or from the folder of all, in which it has its official name.

    Labels are those of the files: of a test file without any they are None. Of the folder of all, AdvGLUE is read too.
    The training file that MRPC's authors give out holds GLUE's dev: what stands there is not trained on.

    Raises:
      UserError: a file is missing or faulty.
    """
    spec, folder = GLUE[config.task], Path(config.data_dir)
    splits, notes = {}, []
    if (folder / spec.folder).is_dir() and not find(folder, spec.files['train']):
        attacked, folder = folder / adversarial.FILE, folder / spec.folder
        if attacked.is_file():
            columns, labels = (spec.first, spec.second), tuple(spec.written)
            splits = adversarial.adversarial_splits(attacked, config.task, columns, labels)
    paths = find_all(folder, spec.files, config.task)
    # Neither of MNLI's two dev files stands for both, and no part of train for either.
    for split in ('dev', 'dev_mismatched') if config.task == 'mnli' else ():
        if split not in paths:
            raise UserError(
                f'--data_dir {folder}: has no {spec.files[split][0]}: MNLI is reported on both of its dev files'
            )
    for split, path in paths.items():
        table = read_table(path, [column for column in (spec.first, spec.second) if column], config.encoding, spec.bare)
        label = spec.label if spec.label in table.columns else ''
        if not label and not split.startswith('test'):
            raise UserError(f'{path}: has no column {spec.label}; it has {", ".join(table.columns)}')
        splits[split], found = examples(table, spec.first, spec.second, label, spec.kind, spec.names)
        notes += found
    task = Task(
        config.task, spec.kind, tuple(spec.written), spec.metrics, splits,
        written={name: text for name, text in spec.written.items() if name != text}, notes=tuple(notes),
    )  # fmt: skip
    return without_those_of(task, 'dev') if config.task == 'mrpc' else task
