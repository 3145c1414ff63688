"""Quality against training FLOPs, for arms whose steps do not cost the same."""

import numpy as np
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import EngFormatter

from experiments.config_json import from_json
from experiments.known_metrics import known
from experiments.reporting.document import Figure, Section
from experiments.reporting.lines import draw_lines
from experiments.reporting.results import Results
from train.config import Config
from train.flops import step_flops

COMPUTE_PNG = 'compute.png'
METRIC = 'curve_probe'


def compute_section(results: Results) -> Section | None:
    """The probe during training, by what training has cost so far."""
    if not any(results.curve(arm, METRIC)[0] for arm in results.arms):
        return None
    caption = (
        'Accuracy of a probe with fewer paragraphs than the one in the table, against training FLOPs (forward and '
        'backward, counted analytically as in the table of costs): mean over seeds, the band from the lowest seed to '
        'the highest. At one place on the axis arms have cost the same, whatever steps they had taken.'
    )
    return Section(
        'Quality against compute', [Figure(COMPUTE_PNG, 'Probe accuracy against training FLOPs, by arm', caption)]
    )


def compute_figure(results: Results) -> Picture | None:
    """One line an arm, in FLOPs of one replica."""
    curves = {arm: results.curve(arm, METRIC) for arm in results.arms}
    if not any(steps for steps, _ in curves.values()):
        return None
    x_of = {arm: [flops_after(results, arm, step) for step in steps] for arm, (steps, _) in curves.items()}
    line = results.counted('curve_probe_majority', None, next(r.task for r in results.rows if r.metric == METRIC))
    figure, axis = draw_lines(
        {arm: (x_of[arm], value_PxS) for arm, (_, value_PxS) in curves.items()},
        'training compute of a replica',
        f'{known("probe").name}, {known("probe").unit}',
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
