"""Encoders fine-tuned on a task: each with each seed at each point of a grid, in as few programs as can be."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import UserError
from train import hosts
from train.checkpoints import Checkpoints
from train.finetuning.config import FinetuneConfig
from train.finetuning.encoders import Encoders
from train.finetuning.grids import label, structure
from train.finetuning.loop import Trained, fine_tune
from train.finetuning.network import Network
from train.finetuning.program import Program, Replica
from train.finetuning.records import StepRecords
from train.finetuning.task_data import Predictions, TaskData
from train.loop import Stopped
from train.preemption import Preemption

LOWEST = -100.0
"""Percent: no metric is lower (a correlation may be so low)."""


@dataclass(frozen=True)
class Result:
    """One encoder, fine-tuned once."""

    task: str
    arm: str
    seed: int
    """That of pretraining."""
    ft_seed: int
    point: str
    """`train.finetuning.grids.label` of its hyperparameters."""
    epoch: int
    """The epoch whose weights count, from 1."""
    failed_at: int | None
    """The update, counted from 1, at which it was not finite: it was left as it was before."""
    selection: float | None
    """The score that choices go by, in percent; None where nothing is chosen, or the replica failed or ended without
    finite outputs."""
    threshold: float | None
    """Of no answer, where there may be none."""
    scores: Mapping[str, Mapping[str, float]]
    """Split -> metric -> percent."""
    degenerate: Mapping[str, bool]
    """Split -> whether it does no better than the commonest label, or gives one answer always."""


@dataclass(frozen=True)
class Finished:
    """A program that has been trained and evaluated."""

    program: Program
    trained: Trained
    data: TaskData
    results: tuple[Result, ...]
    """In the order of the replicas."""

    def predictions(self, split: str) -> list[Predictions]:
        """Of every replica."""
        outputs_R = self.program.predict(self.trained.params, self.trained.frozen, self.data.features(split))
        return [
            self.data.predictions(split, outputs, result.threshold)
            for outputs, result in zip(outputs_R, self.results, strict=True)
        ]


def plan(encoders: Encoders, data: TaskData, points: Sequence[FinetuneConfig]) -> dict[str, Program]:
    """Name -> program, one for each structure of the points: every encoder with every seed at its points.

    Raises:
      UserError: the encoders have fewer layers than are read; a batch does not divide over the devices.
    """
    groups: dict[FinetuneConfig, list[FinetuneConfig]] = {}
    for point in points:
        groups.setdefault(structure(point), []).append(point)
    return {str(number): _program(encoders, data, group) for number, group in enumerate(groups.values())}


def tune(
    programs: Mapping[str, Program],
    data: TaskData,
    *,
    folder: Path | None = None,
    preemption: Preemption | None = None,
    write: Callable[[dict], None] = lambda record: None,
    done: Mapping[str, Sequence[Result]] | None = None,
    finished: Callable[[str, Finished], None] = lambda name, program: None,
    log: Callable[[str], None] = print,
) -> list[Result]:
    """Fine-tunes and scores the programs of `plan`, one after another; the results of all points.

    Args:
      folder: where checkpoints lie, those of each program in a folder of its name; None: none are saved.
      preemption: asked after every step.
      write: takes a record, kind 'finetune', for each log line of each replica.
      done: results of programs, by name, that an earlier call has finished.
      finished: called with each program's name and the program once it is trained and scored.

    Raises:
      Stopped: preemption asked for it, in a step or before a program.
      UserError: the checkpoints are of something else.
    """
    results: list[Result] = []
    for name, program in programs.items():
        if done and name in done:
            results += done[name]
            continue
        if preemption is not None and hosts.in_any(preemption.requested):
            raise Stopped(f'stopped before {data.task.name}. The same command goes on from here.')
        shown = f'{data.task.name}, program {name}' if len(programs) > 1 else data.task.name
        trained = _train(program, data, folder and folder / name, preemption, write, shown, log)
        program_results = _evaluate(program, data, trained)
        finished(name, Finished(program, trained, data, program_results))
        results += program_results
    return results


def best_points(results: Iterable[Result]) -> dict[str, str]:
    """Arm -> the point with the best mean of its runs' selection scores; of equals, or of one alone, the first.

    A run without a score, which failed, counts as if it had the lowest that there is.
    """
    scores: dict[str, dict[str, list[float]]] = {}
    for result in results:
        score = LOWEST if result.selection is None else result.selection
        scores.setdefault(result.arm, {}).setdefault(result.point, []).append(score)
    return {arm: max(points, key=lambda point: np.mean(points[point])) for arm, points in scores.items()}  # noqa: B023


def chosen(results: Sequence[Result], held: Mapping[str, str] | None = None) -> list[Result]:
    """The results at each arm's best point, or at that of `held` (arm -> point) where it has one."""
    best = {**best_points(results), **(held or {})}
    return [result for result in results if result.point == best[result.arm]]


def _program(encoders: Encoders, data: TaskData, points: Sequence[FinetuneConfig]) -> Program:
    config = points[0]
    if config.features > encoders.model.layers:
        raise UserError(f'--features {config.features}: the encoder has {encoders.model.layers} layers')
    network = Network(encoders.model, data.task.kind, data.outputs, config.features)
    replicas = tuple(
        Replica(encoder, seed, point)
        for point in points
        for encoder in range(len(encoders.names))
        for seed in point.ft_seeds
    )
    try:
        return Program.of(network, encoders, replicas)
    except ValueError as error:
        raise UserError(str(error)) from None


def _train(
    program: Program,
    data: TaskData,
    folder: Path | None,
    preemption: Preemption | None,
    write: Callable[[dict], None],
    name: str,
    log: Callable[[str], None],
) -> Trained:
    names = [_name(program, data, replica) for replica in program.replicas]
    records = StepRecords(program, names, write, log)
    meta = {
        'replicas': [list(each.values()) for each in names],
        'tokenizer': data.tokenizer.vocabulary.fingerprint,
        'rows': len(data.features('train')),
        'max_length': data.max_length,
    }

    def selection(params: Any, frozen: Any) -> np.ndarray:
        return np.array(_selection(program, data, params, frozen)[0])

    about = dict(preemption=preemption, meta=meta, name=name, log=log)
    if folder is None:
        return fine_tune(program, data.features('train'), selection, records, checkpoints=None, **about)
    run = program.config.run
    with Checkpoints(folder, run.keep_checkpoints, log=log, keep_every=run.keep_every) as checkpoints:
        return fine_tune(program, data.features('train'), selection, records, checkpoints=checkpoints, **about)


def _selection(program: Program, data: TaskData, params: Any, frozen: Any) -> tuple[list[float], list[float | None]]:
    """Each replica's score on the split that is chosen by, NaN where its outputs are not finite; and its threshold."""
    split, metric = data.chosen_by, data.task.primary
    found, thresholds = [], []
    for outputs in program.predict(params, frozen, data.features(split)):
        finite = bool(np.isfinite(outputs).all())
        threshold = data.threshold(outputs) if finite else None
        thresholds.append(threshold)
        found.append(data.scores(split, data.predictions(split, outputs, threshold))[metric] if finite else np.nan)
    return found, thresholds


def _evaluate(program: Program, data: TaskData, trained: Trained) -> tuple[Result, ...]:
    count = len(program.replicas)
    selection, thresholds = [np.nan] * count, [None] * count
    if data.chosen_by:
        selection, thresholds = _selection(program, data, trained.params, trained.frozen)
    found: list[dict] = [{} for _ in range(count)]
    degenerate: list[dict] = [{} for _ in range(count)]
    for split in data.reported:
        outputs_R = program.predict(trained.params, trained.frozen, data.features(split))
        for replica, outputs in enumerate(outputs_R):
            predictions = data.predictions(split, outputs, thresholds[replica])
            found[replica][split] = data.scores(split, predictions)
            degenerate[replica][split] = data.is_degenerate(split, predictions, found[replica][split])
    return tuple(
        Result(
            **_name(program, data, replica),
            epoch=int(trained.epochs_R[number]),
            failed_at=trained.failed.get(number),
            # Not NaN, which JSON does not have: a resumed run must choose as this one does.
            selection=selection[number] if number not in trained.failed and np.isfinite(selection[number]) else None,
            threshold=thresholds[number],
            scores=found[number],
            degenerate=degenerate[number],
        )
        for number, replica in enumerate(program.replicas)
    )


def _name(program: Program, data: TaskData, replica: Replica) -> dict[str, Any]:
    """What identifies a replica, in records and results."""
    arm, seed = program.encoders.names[replica.encoder]
    return {
        'task': data.task.name,
        'arm': arm,
        'seed': seed,
        'ft_seed': replica.ft_seed,
        'point': label(replica.config),
    }


def as_record(program: str, result: Result) -> dict[str, Any]:
    """A result for metrics.jsonl, kind 'finetuned'."""
    return {'kind': 'finetuned', 'program': program, **dataclasses.asdict(result)}


def from_records(records: Iterable[Mapping[str, Any]]) -> dict[str, list[Result]]:
    """Program -> results, of those that are whole: a program's are written together."""
    found: dict[str, list[Result]] = {}
    fields = [field.name for field in dataclasses.fields(Result)]
    for record in records:
        if record['kind'] == 'finetuned':
            found.setdefault(record['program'], []).append(Result(**{name: record[name] for name in fields}))
    return found
