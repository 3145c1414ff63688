"""The downstream tasks of an ablation: read once, each cohort evaluated on each, nothing done twice."""

import dataclasses
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.errors import UserError, flags_below
from data.tasks.config import TaskConfig
from data.tasks.registry import load_task
from data.tokenizer import Tokenizer
from experiments.shared import shared_records
from train import hosts
from train.cohort import Cohort
from train.config import Config, EvaluationConfig, TaskEvaluation
from train.downstream import cohort_encoders, reference_figures, task_figures
from train.finetuning.config import FinetuneConfig
from train.finetuning.grids import label, points
from train.finetuning.task_data import TaskData
from train.finetuning.tune import Finished, as_record, best_points, from_records, plan, tune
from train.metrics import Metrics, read
from train.preemption import Preemption


@dataclass(frozen=True)
class Loaded:
    """A task with all that its evaluation needs."""

    title: str
    data: TaskData
    points: list[FinetuneConfig]


class Downstream:
    """What is to be evaluated in one workdir."""

    def __init__(self, path: Path, config: Config, tokenizer: Tokenizer, baseline: str, log: Callable[[str], None]):
        """Looks where the tasks' files are; reads none yet.

        Args:
          config: that of the baseline: all arms are evaluated alike.

        Raises:
          UserError: evaluation.data_dir holds nothing that is asked for.
        """
        self._path, self._config, self._tokenizer, self._baseline, self._log = path, config, tokenizer, baseline, log
        absent = hosts.from_first(lambda: left_out(config.evaluation))
        for title, reason in absent.items():
            log(f'task {title} is left out: {reason}')
        self._wanted = [each for each in config.evaluation.tasks if each.title not in absent]
        self._loaded: dict[str, Loaded] = {}

    def missing(self, cohort: Cohort) -> list[str]:
        """The tasks on which a cohort is still to be evaluated; none where all of it failed."""
        records = shared_records(self._path)
        failed = {record['cohort'] for record in records if record.get('failure')}
        if cohort.name in failed:
            return []
        done = {record['task'] for record in records if (record['kind'], record.get('cohort')) == _done(cohort)}
        return [each.title for each in self._wanted if each.title not in done]

    def prepare(self, cohort: Cohort) -> None:
        """Reads the tasks that a cohort lacks, so that faults in them are found before it is trained.

        Raises:
          UserError: a task cannot be read, is not what was evaluated here before, or does not fit the devices.
        """
        held = {record['task']: record for record in shared_records(self._path) if record['kind'] == 'task'}
        for title in self.missing(cohort):
            if title not in self._loaded:
                (evaluation,) = (each for each in self._wanted if each.title == title)
                with hosts.together(UserError(f'another host cannot read task {title}: give all of them its files')):
                    self._loaded[title] = self._load(evaluation)
            loaded = self._loaded[title]
            if held.get(title, {}).get('data') not in (None, loaded.data.task.fingerprint):
                raise UserError(
                    f'task {title}: other replicas in {self._path} were evaluated on other data: name another --workdir'
                )
            plan(cohort_encoders(cohort, None, self._baseline), loaded.data, loaded.points)  # refuses what cannot be

    def evaluate(self, cohort: Cohort, params_R: Any, failed: set, writer: Metrics, preemption: Preemption) -> None:
        """Fine-tunes all replicas on what is missing, and writes the figures of those that did not fail before.

        Args:
          failed: (arm, seed) of replicas that stood still in pretraining: they give no figure.

        Raises:
          Stopped: preemption asked for it; the same call again goes on.
        """
        missing = self.missing(cohort)
        if not missing:
            return
        self.prepare(cohort)  # a cohort that had to be trained again lacks more than before
        encoders = cohort_encoders(cohort, params_R, self._baseline)
        for title in missing:
            began, loaded = time.monotonic(), self._loaded[title]
            prefix, folder = f'{cohort.name} ', self._path / 'checkpoints' / _folder(cohort, title)
            # Programs of another task have the same names.
            here = [record for record in shared_records(self._path) if record.get('task') == title]
            known = from_records(here)
            done = {name.removeprefix(prefix): known[name] for name in known if name.startswith(prefix)}
            # More seeds of an arm are reported at the point that was chosen for the first of them.
            held = best_points(result for name in known if not name.startswith(prefix) for result in known[name])

            def finished(name: str, program: Finished, prefix=prefix) -> None:
                told = (as_record(prefix + name, result) for result in program.results)
                writer.write(*({**record, 'cohort': cohort.name} for record in told))

            results = tune(
                plan(encoders, loaded.data, loaded.points), loaded.data, folder=folder, preemption=preemption,
                write=writer.write, done=done, finished=finished, log=self._log,
            )  # fmt: skip
            sound = [result for result in results if (result.arm, result.seed) not in failed]
            figures = task_figures(sound, title, len(self._config.stages) - 1, cohort.config.steps, held)
            if hosts.is_first():
                done_now = {'kind': 'evaluated', 'cohort': cohort.name, 'task': title}
                writer.write(*self._about(loaded), *figures, done_now)
                writer.flush()
                shutil.rmtree(folder, ignore_errors=True)
            self._log(f'cohort {cohort.name}: {title} in {time.monotonic() - began:.0f} s')

    def _load(self, evaluation: TaskEvaluation) -> Loaded:
        title, config = evaluation.title, self._config
        data_dir = str(_place(config.evaluation, evaluation)) if evaluation.needs_files else evaluation.task.data_dir
        number = config.evaluation.tasks.index(evaluation)
        with flags_below(f'evaluation.tasks.{number}.task', TaskConfig):
            task = load_task(dataclasses.replace(evaluation.task, data_dir=data_dir), config.data)
        for note in task.notes:
            self._log(note)
        recipe = {field.name: getattr(evaluation.recipe, field.name) for field in dataclasses.fields(evaluation.recipe)}
        whole = FinetuneConfig(**recipe, evaluation_batch_size=config.evaluation.batch_size, run=config.run)
        tried = points(whole, evaluation.grid)
        longest = max(stage.length for stage in config.stages)
        task = dataclasses.replace(task, name=title)
        return Loaded(title, TaskData.of(task, self._tokenizer, tried[0], len(tried), longest), tried)

    def _about(self, loaded: Loaded) -> list[dict]:
        """What the report says of a task, and its references: for the first cohort alone."""
        if any(record['kind'] == 'task' and record['task'] == loaded.title for record in read(self._path)):
            return []
        task = loaded.data.task
        about = {
            'kind': 'task',
            'task': loaded.title,
            'data': task.fingerprint,
            'primary': task.primary,
            'examples': {split: len(examples) for split, examples in task.splits.items()},
            'chosen_by': loaded.data.chosen_by,
            'points': [label(point) for point in loaded.points],
            'features': loaded.points[0].features,
            'notes': list(task.notes),
        }
        return [about, *reference_figures(loaded.data, loaded.title)]


def left_out(evaluation: EvaluationConfig) -> dict[str, str]:
    """Task -> why there is nothing to evaluate it on.

    Raises:
      UserError: the folder of the tasks' files holds none of them.
    """
    asked = [each for each in evaluation.tasks if each.needs_files]
    root = evaluation.data_dir
    if not root:
        return {each.title: 'no --evaluation.data_dir was given' for each in asked}
    if not Path(root).is_dir():
        raise UserError(f'--evaluation.data_dir {root}: no such folder')
    absent = {each.title: _place(evaluation, each) for each in asked if not _place(evaluation, each).exists()}
    if asked and len(absent) == len(asked):
        raise UserError(f'--evaluation.data_dir {root}: none of {", ".join(map(str, absent.values()))} is there')
    return {title: f'{place} is not there' for title, place in absent.items()}


def _place(evaluation: EvaluationConfig, each: TaskEvaluation) -> Path:
    return Path(evaluation.data_dir) / each.task.data_dir


def _folder(cohort: Cohort, title: str) -> str:
    return f'{cohort.name}-{re.sub(r"[^A-Za-z0-9.]+", "_", title)}'


def _done(cohort: Cohort) -> tuple[str, str]:
    return 'evaluated', cohort.name
