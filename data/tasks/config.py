"""Which task, and where its data lies."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class TaskConfig:
    """A task by name, its folder, and for data of one's own the names of its columns."""

    task: str = ''
    """GLUE's cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli; tagging (CoNLL files); squad1, squad2 (SQuAD's JSON);
    table (TSV or JSONL, see the columns); tfds:NAME; corpus:century, corpus:party or corpus:label (of the run's own
    corpus)."""
    data_dir: str = ''
    """Folder with the task's files; of tagging, squad1, squad2 and table also one file. tfds: where data sets lie
    (empty: TFDS_DATA_DIR)."""
    first: str = ''
    """table, tfds: column of the sentence, by name, or by number from 1 where the file has no header."""
    second: str = ''
    """table, tfds: column of the second sentence of a pair."""
    label: str = ''
    """table, tfds: column of the label. tagging: column of the tag, by number from 1 (empty: the last)."""
    target: Literal['classes', 'numbers'] = 'classes'
    """table, tfds: what the label column holds."""
    encoding: str = 'utf-8'
    """Encoding of the files."""

    def __post_init__(self):
        """Raises ValueError where a task lacks what it needs, or is given what it has no use for."""
        own = self.task == 'table' or self.task.startswith('tfds:')
        if self.task == 'table' and not (self.first and self.label):
            raise ValueError('task table needs --first and --label, the names of its columns (and --second for pairs)')
        if self.task and not own and (self.first or self.second or self.target != 'classes'):
            raise ValueError(f'task {self.task} knows its columns: first, second, target are for table and tfds:NAME')
        if self.label and not own and self.task != 'tagging':
            raise ValueError(f'task {self.task} knows its columns: label is for table, tfds:NAME and tagging')
