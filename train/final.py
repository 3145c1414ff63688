"""Everything that is measured of a trained cohort."""

from collections.abc import Callable

from data.store import TokenStore
from train.cost import cost_figures
from train.evaluate import HeldOut
from train.examples import example_records
from train.hosts import readable
from train.likelihood import likelihood_figures
from train.pair_figures import pair_figures
from train.probe import Probe
from train.program import Program
from train.step import State


def final_records(
    program: Program, store: TokenStore, state: State, pause: Callable[[], None] = lambda: None
) -> tuple[list[dict], list[str]]:
    """Records for metrics.jsonl of every replica that has not failed, and remarks for the user.

    Args:
      pause: called between one measure and the next; what it raises ends the evaluation.
    """
    cohort, mesh, params_R = program.cohort, program.mesh, program.encoders(state.params)
    config = cohort.config
    stage, step, length = len(config.stages) - 1, config.steps, config.stages[-1].length
    predicts = config.objective.predicts
    figures = HeldOut(store, cohort, length, mesh).figures(params_R, stage, step) if predicts else []
    pause()
    if predicts and config.evaluation.likelihood_paragraphs:
        figures += likelihood_figures(store, cohort, params_R, length, mesh, stage, step)
    pause()
    remarks = []
    if config.objective.judges_pairs:
        pairs, remarks = pair_figures(store, cohort, state.params, length, mesh, stage, step)
        figures += pairs
        pause()
    if config.evaluation.probe_paragraphs:
        probe = Probe(store, cohort, length, mesh, config.evaluation.probe_paragraphs)
        figures += probe.majority() + probe.figures(params_R, stage, step)
        remarks += [probe.reason] if probe.reason else []
    for replica in cohort.replicas:
        figures += cost_figures(replica)
    pause()
    records = [{'kind': 'figure', **record} for record in figures]
    if predicts and config.evaluation.examples:
        records += example_records(store, cohort, params_R, length, mesh)
    steps_R = readable(state.step, mesh).tolist()
    reached = {(r.arm, r.seed): done for r, done in zip(cohort.replicas, steps_R, strict=True)}
    return [record for record in records if reached.get((record['arm'], record['seed']), step) == step], remarks
