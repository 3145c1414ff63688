"""Quality against training FLOPs, for arms whose steps do not cost the same."""

import json

import numpy as np
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import EngFormatter

from experiments.config_json import from_json
from experiments.known_metrics import known
from experiments.reporting.document import Figure, Section
from experiments.reporting.lines import draw_lines
from experiments.reporting.results import Results
from experiments.reporting.wording import percent
from train.config import Config
from train.flops import step_flops

COMPUTE_PNG = 'compute.png'
METRICS = {'curve_probe': 'probe', 'curve_loss': 'loss'}
"""What may stand against FLOPs, the first that was measured, and the metric of the tables that it is like."""


def compute_section(results: Results) -> Section | None:
    """The probe, or else the loss, during training, by what training has cost so far."""
    metric = _metric(results)
    if metric is None:
        return None
    what = 'Accuracy of a probe with fewer paragraphs than' if metric == 'curve_probe' else 'Loss on fewer rows than'
    caption = (
        f'{what} the one in the table, against training FLOPs (forward and backward, counted analytically as in the '
        'table of costs): mean over seeds, the band from the lowest seed to the highest. At one place on the axis arms '
        'have cost the same, whatever steps they had taken.'
    )
    name = 'Probe accuracy' if metric == 'curve_probe' else 'Loss'
    return Section('Quality against compute', [Figure(COMPUTE_PNG, f'{name} against training FLOPs, by arm', caption)])


def _metric(results: Results) -> str | None:
    """The probe where its curve was drawn; the loss where arms differ in more than how they mask and learn, so that
    steps, and tokens, may cost something else in each."""
    measured = [metric for metric in METRICS if any(results.curve(arm, metric)[0] for arm in results.arms)]
    configs = [results.config['configs'][arm] for arm in results.arms]
    shapes = {json.dumps([config.get(part) for part in ('stages', 'model', 'objective')]) for config in configs}
    return next(iter(measured), None) if 'curve_probe' in measured or len(shapes) > 1 else None


def compute_figure(results: Results) -> Picture | None:
    """One line an arm, in FLOPs of one replica."""
    metric = _metric(results)
    if metric is None:
        return None
    curves = {arm: results.curve(arm, metric) for arm in results.arms}
    x_of = {arm: [flops_after(results, arm, step) for step in steps] for arm, (steps, _) in curves.items()}
    row, like = next(r for r in results.rows if r.metric == metric), known(METRICS[metric])
    line = results.counted('curve_probe_majority', None, row.task)
    figure, axis = draw_lines(
        {arm: (x_of[arm], value_PxS) for arm, (_, value_PxS) in curves.items()},
        'training compute of a replica',
        (f'{like.name} at {percent(row.eval_rate)}' if row.eval_rate is not None else like.name) + f', {like.unit}',
        {} if line is None else {'commonest label': line},
    )
    axis.xaxis.set_major_formatter(EngFormatter(unit='FLOP'))
    return figure


def flops_after(results: Results, arm: str, step: int) -> float:
    """FLOPs of an arm's first updates, so many."""
    config: Config = from_json(Config, results.config['configs'][arm])
    total = 0.0
    for index, stage in enumerate(config.stages):
        total += int(np.clip(step, 0, stage.steps)) * step_flops(config, index)
        step -= stage.steps
    return total
