"""Tasks by name."""

from data.config import DataConfig
from data.tasks.config import TaskConfig
from data.tasks.task import Task


def load_task(config: TaskConfig, corpus: DataConfig | None = None) -> Task:
    """Reads a task.

    Args:
      corpus: what the model was pretrained on, for corpus:LABEL.

    Raises:
      UserError: there is no such task, or its data is missing or faulty.
    """
    raise NotImplementedError
