"""A fine-tuning's workdir: what was asked of it, and whether a new command may go on there."""

import json
import os
from pathlib import Path
from typing import Any

from data.errors import UserError
from data.tokenizer import Tokenizer
from experiments.config_paths import differences
from experiments.workdir import TOKENIZER, refuse, spoken

MAY_DIFFER = ('command', 'config.run.', 'config.evaluation_batch_size', 'task.data_dir', 'init', 'versions.')
"""What changes no result but by rounding; data and encoder are compared by what they hold."""


def open_finetuning(path: Path, asked: dict[str, Any]) -> None:
    """Writes config.json into a new workdir, or checks that the one there asks for the same.

    Raises:
      UserError: the folder holds something else, or another fine-tuning: what differs is named.
    """
    file = path / 'config.json'
    if not file.exists():
        if any(entry.name != '.lock' for entry in path.iterdir()):
            raise UserError(f'--workdir {path} is not empty and has no config.json: name another folder')
        part = file.with_suffix('.part')
        part.write_text(json.dumps({'finetuning': asked}, indent=1) + '\n')
        os.replace(part, file)
        return
    both = differences(read_finetuning(path), asked)
    refuse(path, [spoken(name, *both[name]) for name in sorted(both) if not name.startswith(MAY_DIFFER)])


def read_finetuning(path: Path) -> dict[str, Any]:
    """What was asked for in a workdir.

    Raises:
      UserError: it holds no fine-tuning.
    """
    file = Path(path) / 'config.json'
    try:
        record = json.loads(file.read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f'{path} is not a workdir of experiments.finetune: it has no config.json') from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f'{file} cannot be read: {error}') from None
    if not isinstance(record, dict) or not isinstance(record.get('finetuning'), dict):
        raise UserError(f'{path} is not a workdir of experiments.finetune: its config.json is of another kind')
    return record['finetuning']


def keep_tokenizer(path: Path, tokenizer: Tokenizer) -> None:
    """Puts the tokenizer into the workdir, for `experiments.predict`."""
    (path / TOKENIZER).mkdir(exist_ok=True)
    tokenizer.save(path / TOKENIZER)
