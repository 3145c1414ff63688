"""Runs an ablation in a workdir: plan, train, evaluate, report. The same call again goes on where it stopped."""

import contextlib
import dataclasses
import datetime
import platform
import shlex
import sys
import time
from pathlib import Path

import jax
from tqdm import tqdm

from data.errors import UserError
from data.formats import rows_of
from data.store import TokenStore
from experiments import tuning
from experiments import workdir as workdirs
from experiments.ablation import Ablation
from experiments.config_json import to_json
from experiments.config_paths import changed
from experiments.downstream import Downstream, left_out
from experiments.reporting import write_report
from experiments.shared import shared_records, shared_store
from experiments.workdir import Workdir
from train import hosts
from train.baselines import baseline_figures, baselines_known
from train.checkpoints import Checkpoints
from train.cohort import Cohort, Replica
from train.config import Config
from train.evaluate import HeldOut
from train.failures import AllFailed
from train.final import final_records
from train.loop import Stopped, train
from train.mesh import side_by_side
from train.metrics import Metrics, NoMetrics, read
from train.preemption import Preemption
from train.probe import Paragraphs, Probe
from train.program import Program
from train.step import State
from train.versions import versions


def run(ablation: Ablation, scale: str, path: Path, seeds: range, grid: tuning.Grid | None = None) -> str:
    """Carries an ablation to its report and returns the table. All processes of a run call it alike.

    Raises:
      Stopped: asked to stop; all is saved, and the same command goes on.
      UserError: a mistake in the config, the corpus or the workdir; or no replica of a cohort is left, said when all
        others are trained and in the report.
    """
    first = hosts.from_first(lambda: str(path))
    if hosts.in_any(str(path) != first):
        raise UserError(f'--workdir: not all processes of this run were given {first}, as the first was')
    with contextlib.ExitStack() as held, Preemption() as preemption:
        hosts.from_first(lambda: held.enter_context(workdirs.lock(path)))
        about = {
            'scale': scale,
            'command': shlex.join(['python', '-m', f'experiments.{Path(sys.argv[0]).stem}', *sys.argv[1:]]),
            'grid': grid and {'field': grid.field, 'values': list(grid.values)},
        }
        workdir = hosts.from_first(lambda: workdirs.open_workdir(path, ablation, about))
        workdir.writes = hosts.is_first()
        configs = {arm.name: ablation.config(arm.name) for arm in ablation.arms}
        workdir.check(grid.crossed(configs) if grid else configs)  # before a corpus is prepared for nothing
        hosts.from_first(lambda: left_out(configs[ablation.baseline].evaluation))
        collocations = any(config.masking.unit == 'collocation' for config in configs.values())
        store = shared_store(configs[ablation.baseline].data, collocations, say)
        hosts.from_first(lambda: _check_labels(ablation, store))
        configs = {arm: with_vocabulary(config, store) for arm, config in configs.items()}
        study = Study(workdir, store, preemption)
        downstream = Downstream(path, configs[ablation.baseline], store.tokenizer, ablation.baseline, say)
        if grid:
            crossed = grid.crossed(configs)
            # A value at which an arm fails is an answer.
            goes_on = {arm: changed(config, {'run.on_nan': 'continue'}) for arm, config in crossed.items()}
            study.carry_out([Replica(arm, tuning.SEED, config) for arm, config in goes_on.items()])
            workdir.record['grid'] = grid.chosen(shared_records(path), list(configs), ablation)
            chosen = workdir.record['grid']['chosen']
            say(f'best {grid.field}: ' + ', '.join(f'{arm} {value:g}' for arm, value in chosen.items()))
            configs = {arm: changed(config, {grid.field: chosen[arm]}) for arm, config in configs.items()}
        workdir.record['ablation']['arms'] |= {arm.name: to_json(arm.changes) for arm in ablation.arms}
        study.carry_out([Replica(arm, seed, config) for seed in seeds for arm, config in configs.items()], downstream)
        table = hosts.from_first(lambda: write_report([path], path))
        if hosts.is_first():
            _note_look(workdir)
    if failures := [record['failure'] for record in shared_records(path) if record.get('failure')]:
        say(table)
        raise UserError('; '.join(failures))
    return f'{table}\n{path / "report.html"}'


def _check_labels(ablation: Ablation, store: TokenStore) -> None:
    """Refuses a text without a probe where arms are compared by one, before anything is trained on it."""
    if ablation.primary == 'probe' and ablation.primary_task is None and len(ablation.arms) > 1:
        config = ablation.config(ablation.baseline)
        if reason := Paragraphs(store, config.evaluation.probe_paragraphs).reason:
            raise UserError(
                f'--data.corpus {config.data.corpus}: arms are compared by the probe, and this text gives {reason}; '
                'give more held-out documents labels, or name another primary measure in the config file'
            )


def _note_look(workdir: Workdir) -> None:
    """Notes what was seen, so that a later report can say which seeds and arms were added with a result at hand."""
    arms = list(workdir.record['ablation']['arms'])
    seeds = sorted({each.seed for cohort in workdir.cohorts for each in cohort.replicas if each.arm in arms})
    look = {'kind': 'report', 'seeds': seeds, 'arms': arms}
    if not any(look.items() <= record.items() for record in read(workdir.path)):
        with Metrics(workdir.path) as writer:
            writer.write(look)


def run_and_print(*arguments) -> None:
    """`run`, with the table on the terminal; asked to stop, it says how to go on and exits with 0."""
    try:
        said = run(*arguments)
    except Stopped as stopped:
        said = str(stopped)
    if hosts.is_first():
        print(said)


def with_vocabulary(config: Config, store: TokenStore) -> Config:
    """The config with the tokenizer's vocabulary size in the model."""
    size = store.tokenizer.vocabulary.size
    if config.model.vocab_size not in (0, size):
        raise UserError(f'--model.vocab_size {config.model.vocab_size}: the tokenizer has {size}; leave the flag out')
    return dataclasses.replace(config, model=dataclasses.replace(config.model, vocab_size=size))


def say(line: str) -> None:
    """Prints a line above a progress bar, if there is one; of several processes the first does."""
    if hosts.is_first():
        tqdm.write(line)
        sys.stdout.flush()


class Study:
    """The work in one workdir."""

    def __init__(self, workdir: Workdir, store: TokenStore, preemption: Preemption):
        self.workdir = workdir
        self._store = store
        self._preemption = preemption
        self._said: set[str] = set()

    def carry_out(self, replicas: list[Replica], downstream: Downstream | None = None) -> None:
        """Trains and evaluates those of the replicas that are not finished yet, with their cohorts.

        Args:
          downstream: the tasks that they are fine-tuned on; None: on none.
        """
        self.workdir.add({replica.arm: replica.config for replica in replicas})
        run = replicas[0].config.run
        self.workdir.plan(replicas, side_by_side(run.mesh, jax.device_count()))
        wanted = {(replica.arm, replica.seed) for replica in replicas}
        records = shared_records(self.workdir.path)
        finished = {record['cohort'] for record in records if record['kind'] == 'finished'}
        cohorts = [
            cohort
            for cohort in self.workdir.cohorts
            if wanted & {(replica.arm, replica.seed) for replica in cohort.replicas}
            and (cohort.name not in finished or (downstream and downstream.missing(cohort)))
        ]
        programs = [self._program(cohort) for cohort in cohorts]
        for cohort in cohorts if downstream else []:
            downstream.prepare(cohort)
        with hosts.together(UserError('another host reads another token store: give all of them the same one')):
            self.workdir.keep(self._store.tokenizer, self._store.manifest['text']['sha256'])
        self.workdir.save()
        first = hosts.is_first()
        with Metrics(self.workdir.path, tensorboard=run.tensorboard) if first else NoMetrics() as writer:
            config = replicas[0].config
            if first and not baselines_known(records, config):
                baselines = baseline_figures(self._store, config, config.stages[-1].length)
                writer.write(*({'kind': 'figure', **record} for record in baselines))
            for program in programs:
                self._stop_if_asked()
                try:
                    self._carry_out(program, writer, program.cohort.name in finished, downstream)
                except AllFailed as failed:  # the other cohorts go on
                    writer.write({'kind': 'finished', 'cohort': program.cohort.name, 'failure': str(failed)})

    def _say_once(self, remark: str) -> None:
        """What holds of every cohort of this text."""
        if remark not in self._said:
            say(remark)
        self._said.add(remark)

    def _stop_if_asked(self) -> None:
        if hosts.in_any(self._preemption.requested):
            raise Stopped('stopped; all that was trained is saved. The same command goes on from here.')

    def _program(self, cohort: Cohort) -> Program:
        """The cohort's program, once it is clear that it fits the devices and that the text has rows for it."""
        vocabulary = self._store.tokenizer.vocabulary
        objective = cohort.config.objective
        for stage in cohort.config.stages:
            rows_of(self._store.train, stage.length, vocabulary, objective.rows, objective.second)
        try:
            return Program.of(cohort, vocabulary)
        except ValueError as error:
            raise UserError(str(error)) from None

    def _carry_out(self, program: Program, writer: Metrics, finished: bool, downstream: Downstream | None) -> None:
        """Whatever of a cohort is still to do: its training, its evaluation, its downstream tasks."""
        cohort = program.cohort
        began = time.monotonic()
        about = {'kind': 'run', 'cohort': cohort.name}
        host = f'{platform.machine()}, {len(program.mesh.devices.flat)} x {jax.devices()[0].device_kind}'
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        writer.write({**about, 'event': 'start', 'date': date, 'host': host, 'versions': versions()})
        folder = self.workdir.path / 'checkpoints' / cohort.name
        run = cohort.config.run
        with Checkpoints(folder, run.keep_checkpoints, log=say, keep_every=run.keep_every) as checkpoints:
            restored = checkpoints.restore(program.abstract_state()) if finished else None
            if restored and restored[0] == cohort.config.steps:
                state = restored[1]
            else:
                state = self._train(program, checkpoints, writer)
                finished = False
        self._stop_if_asked()
        trained = time.monotonic()
        if not finished:
            records, remarks = final_records(program, self._store, state, self._stop_if_asked)
            for remark in remarks:
                self._say_once(remark)
            writer.write(*records, {'kind': 'finished', 'cohort': cohort.name})
            writer.flush()
            say(f'cohort {cohort.name}: evaluated in {time.monotonic() - trained:.0f} s')
        evaluated = time.monotonic()
        if downstream:
            params_R = program.encoders(state.params)
            step_R = hosts.readable(state.step, program.mesh).tolist()
            del state, restored  # the optimizer's moments are not needed any more
            failed = {
                (replica.arm, replica.seed)
                for replica, step in zip(cohort.replicas, step_R, strict=True)
                if step < cohort.config.steps
            }
            downstream.evaluate(cohort, params_R, failed, writer, self._preemption)
        ended = time.monotonic()
        seconds = {'training': trained - began, 'fine_tuning': ended - evaluated, 'seconds': ended - began}
        writer.write({**about, 'event': 'end', **seconds})

    def _train(self, program: Program, checkpoints: Checkpoints, writer: Metrics) -> State:
        cohort = program.cohort
        return train(
            program,
            self._store,
            checkpoints,
            writer,
            self._preemption,
            meta={
                'replicas': [[replica.arm, replica.seed] for replica in cohort.replicas],
                'configs': {replica.arm: to_json(replica.config) for replica in cohort.replicas},
                'tokenizer': self._store.tokenizer.vocabulary.fingerprint,
                'text': self._store.manifest['text']['sha256'],
                'versions': versions(),
            },
            curve=self._curve(program, writer),
            workdir=self.workdir.path,
            log=say,
        )

    def _curve(self, program: Program, writer: Metrics):
        """Writes a point of each replica's learning curve, at the last stage's length."""
        cohort, config = program.cohort, program.cohort.config
        at = (self._store, cohort, config.stages[-1].length, program.mesh)
        held_out = HeldOut(*at) if config.objective.predicts else None
        probe = Probe(*at, config.evaluation.curve_probe) if config.evaluation.curve_probe else None
        commonest = probe.majority('curve_probe_majority') if probe else []
        writer.write(*({'kind': 'figure', **record} for record in commonest))

        def curve(state: State, stage: int, step: int) -> None:
            params_R = program.encoders(state.params)
            points = held_out.curve(params_R, stage, step) if held_out else []
            points += probe.figures(params_R, stage, step, 'curve_probe') if probe else []
            writer.write(*({'kind': 'figure', **point} for point in points))

        return curve
