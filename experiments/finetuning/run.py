"""Carries out a fine-tuning in its workdir: data, programs, the model that is kept, predictions, the table."""

import datetime
import platform
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from data.tasks.registry import load_task
from data.tasks.submission import write_predictions
from data.tasks.task import Task
from experiments import workdir as workdirs
from experiments.config_json import to_json
from experiments.devices import cores
from experiments.finetune import FinetuneFlags
from experiments.finetuning.encoder import Source, read_encoder
from experiments.finetuning.model import save_model
from experiments.finetuning.table import table, task_record, write_csv
from experiments.finetuning.workdir import keep_tokenizer, open_finetuning
from experiments.study import say
from train.finetuning.config import FinetuneConfig
from train.finetuning.grids import label
from train.finetuning.task_data import SLICE, TaskData
from train.finetuning.tune import Finished, Result, as_record, best_points, from_records, plan, tune
from train.loop import Stopped
from train.metrics import Metrics, read
from train.preemption import Preemption
from train.versions import versions


def run_and_print(flags: FinetuneFlags, points: list[FinetuneConfig]) -> None:
    """`run`, with the table on the terminal; asked to stop, it says how to go on and exits with 0."""
    try:
        print(run(flags, points))
    except Stopped as stopped:
        print(stopped)


def run(flags: FinetuneFlags, points: list[FinetuneConfig]) -> str:
    """Fine-tunes at every point and returns the table.

    Raises:
      Stopped: asked to stop; all is saved, and the same command goes on.
      UserError: a mistake in the flags, the data, the encoder or the workdir.
    """
    path = flags.workdir
    with workdirs.lock(path), Preemption() as preemption:
        source = read_encoder(flags.init, flags.arm, flags.seed)
        task = load_task(flags.task, source.corpus)
        for note in task.notes:
            say(note)
        data = TaskData.of(task, source.tokenizer, points[0], len(points), source.encoders.longest)
        if data.max_length < points[0].max_length:
            say(f'rows of {data.max_length} tokens at most: the encoder was pretrained on no longer ones')
        programs = plan(source.encoders, data, points)  # refuses what cannot be
        open_finetuning(path, _asked(flags, points, source, task))
        keep_tokenizer(path, source.tokenizer)
        keeper, about = Keeper(path, data), task_record(data)
        with Metrics(path) as writer:
            keeper.writer = writer
            if about not in read(path):
                writer.write(about)
            results = tune(
                programs,
                data,
                folder=path / 'checkpoints',
                preemption=preemption,
                write=writer.write,
                done=keeper.done,
                finished=keeper.keep,
                log=say,
            )
        write_csv(path / 'results.csv', results)
        text = table(about, results)
        (path / 'table.md').write_text(text)
    return text


class Keeper:
    """Takes finished programs: keeps the best point's weights and predictions, notes results, clears checkpoints."""

    def __init__(self, path: Path, data: TaskData):
        self._path, self._data = path, data
        self._began = time.monotonic()
        self._goes_on = any((path / 'checkpoints').glob('*/*'))
        self.writer: Metrics | None = None
        self.done = from_records(read(path))

    def keep(self, name: str, finished: Finished) -> None:
        """To be called with each program in turn; done again after a crash, it does the same."""
        results = finished.results
        (best,) = best_points([*(each for program in self.done.values() for each in program), *results]).values()
        chosen = [result for result in results if result.point == best]
        if chosen:
            save_model(self._path, int(name), finished, chosen)
            self._predict(finished, chosen)
        self.writer.write(*(as_record(name, result) for result in results), self._end(name))
        self.done[name] = list(results)
        shutil.rmtree(self._path / 'checkpoints' / name, ignore_errors=True)

    def _end(self, program: str) -> dict[str, Any]:
        """When, where and in what time: None where another start had begun the program."""
        seconds = None if self._goes_on else time.monotonic() - self._began
        self._began, self._goes_on = time.monotonic(), False
        return {
            'kind': 'run',
            'event': 'end',
            'program': program,
            'date': datetime.datetime.now(datetime.UTC).date().isoformat(),
            'host': f'{cores()} CPU core{"s" * (cores() > 1)}, {platform.machine()}',
            'seconds': seconds,
        }

    def _predict(self, finished: Finished, chosen: list[Result]) -> None:
        """predictions/seed-N/, in the form of each task's own scorer, for all splits but those of train."""
        for split in (split for split in self._data.task.splits if split not in ('train', SLICE)):
            for result, predictions in zip(finished.results, finished.predictions(split), strict=True):
                if result in chosen:
                    folder = self._path / 'predictions' / split / f'seed-{result.ft_seed}'
                    write_predictions(self._data.task, split, predictions.values, folder, predictions.spans)


def _asked(flags: FinetuneFlags, points: list[FinetuneConfig], source: Source, task: Task) -> dict[str, Any]:
    (name,) = source.encoders.names
    return to_json(
        {
            'command': shlex.join(['python', '-m', 'experiments.finetune', *sys.argv[1:]]),
            'task': flags.task,
            'data': task.fingerprint,
            'config': points[0],
            'points': [label(point) for point in points],
            'init': flags.init,
            'encoder': {'arm': name[0], 'seed': name[1], 'weights': source.fingerprint, **source.about},
            'tokenizer': source.tokenizer.vocabulary.fingerprint,
            'versions': versions(),
        }
    )
