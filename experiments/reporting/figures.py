"""All pictures of a report; here those of differences, learning curves and the p values of all pairs."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from experiments.known_metrics import known
from experiments.reporting import comparisons
from experiments.reporting.compute import COMPUTE_PNG, compute_figure
from experiments.reporting.controls import control_differences, shown_controls
from experiments.reporting.differences import DIFFERENCES_PNG, PAIRS_PNG
from experiments.reporting.lines import COLOURS, DPI, GREY, INK, WIDTH, draw_lines, literal, plain
from experiments.reporting.rates import RATES_PNG, rates_figure
from experiments.reporting.results import Measure, Results
from experiments.reporting.sections import CURVES_PNG
from experiments.reporting.wording import TESTS, measure_name, percent
from experiments.statistics import LEVEL, Test


def write_figures(results: Results, folder: Path) -> None:
    """Writes the pictures that apply and removes old ones that no longer do."""
    makers = {
        DIFFERENCES_PNG: differences_figure,
        RATES_PNG: rates_figure,
        CURVES_PNG: curves_figure,
        COMPUTE_PNG: compute_figure,
        PAIRS_PNG: pairs_figure,
    }
    for name, make in makers.items():
        figure = make(results)
        path = folder / name
        if figure is None:
            path.unlink(missing_ok=True)
        else:
            FigureCanvasAgg(figure)
            figure.savefig(path, dpi=DPI, metadata={'Software': None})


def differences_figure(results: Results) -> Figure | None:
    """Each arm's difference from the baseline with both intervals, then controls; one panel an evaluation rate."""
    if not comparisons.any_difference(comparisons.differences(results, results.primary)):
        return None
    measures = [m for m in results.measures if m[::2] == results.primary[::2]]
    others = [arm for arm in results.arms if arm != results.ablation['baseline']]
    controls = shown_controls(results)
    names = [literal(name) for name in (*others, *controls)]
    figure = Figure(figsize=(WIDTH, 1.35 + 0.42 * len(names)), layout='constrained')
    axes = figure.subplots(1, len(measures), sharex=True, sharey=True, squeeze=False)[0]
    unit = known(results.primary.metric)
    for axis, measure in zip(axes, measures, strict=True):
        for place, comparison in enumerate(comparisons.differences(results, measure)):
            other = comparison.welch if comparison.counts == 'paired' else comparison.paired
            _interval(axis, comparison.counting, place, INK, 1.0)
            _interval(axis, other, place + 0.24, GREY, 0.75)
        for place, name in enumerate(controls, len(others)):
            chance = control_differences(results, measure, name)
            axis.plot(chance, [place] * len(chance), 'D', markersize=4.5, color=INK, markerfacecolor='white')
        axis.axvline(0, color=GREY, linewidth=0.8, zorder=0)
        axis.set_title(_panel_title(results, measure), fontsize=9, color=INK)
        axis.set_yticks(range(len(names)), names)
        axis.set_ylim(len(names) - 0.4, -0.55)
        axis.xaxis.set_major_locator(MaxNLocator(4))
        axis.tick_params(axis='y', length=0)
        plain(axis, ('bottom',))
        axis.margins(x=0.08)
    figure.supxlabel(
        f'{unit.name}, arm less {literal(results.ablation["baseline"])}, {unit.difference_unit} '
        f'({LEVEL:.0%} intervals; black {TESTS[results.ablation["comparison"]]}, '
        f'grey {TESTS["welch" if results.ablation["comparison"] == "paired" else "paired"]})',
        fontsize=8.5,
        color=INK,
    )
    return figure


def _interval(axis: Axes, test: Test, place: float, colour: str, size: float) -> None:
    if test.difference is None:
        return
    known = test.low is not None
    if known:
        axis.plot([test.low, test.high], [place, place], color=colour, linewidth=1.8 * size)
    face = colour if known else 'white'
    axis.plot(test.difference, place, 'o', markersize=5.5 * size, color=colour, markerfacecolor=face)


def _panel_title(results: Results, measure: Measure) -> str:
    if measure.eval_rate is None:
        return measure_name(measure)
    return f'evaluated at {percent(measure.eval_rate)}' + (' (primary)' if measure == results.primary else '')


def curves_figure(results: Results) -> Figure | None:
    """Mean learning curve of each arm with a band from its lowest seed to its highest."""
    curves = {arm: results.curve(arm) for arm in results.arms}
    if not any(steps for steps, _ in curves.values()):
        return None
    by_tokens = len({_stages(results, arm) for arm in results.arms}) > 1

    def x_of(arm: str, steps: list[int]) -> list[float]:
        return [_tokens(results, arm, step) / 1e6 if by_tokens else step for step in steps]

    entropy = results.counted('unigram_entropy')
    rate = next(row.eval_rate for row in results.rows if row.metric == 'curve_loss')
    figure, axis = draw_lines(
        {arm: (x_of(arm, steps), loss_PxS) for arm, (steps, loss_PxS) in curves.items()},
        'tokens read, millions' if by_tokens else 'step',
        f'loss at {percent(rate)}, nats a token',
        {} if entropy is None else {'unigram entropy': entropy},
    )
    if not by_tokens:
        _stage_marks(axis, results)
    return figure


def _stages(results: Results, arm: str) -> tuple:
    stages = results.config['configs'][arm]['stages']
    return tuple((stage['steps'], stage['batch_size'], stage['length']) for stage in stages)


def _tokens(results: Results, arm: str, step: int) -> int:
    total = 0
    for steps, batch_size, length in _stages(results, arm):
        total += min(steps, max(step, 0)) * batch_size * length
        step -= steps
    return total


def _stage_marks(axis: Axes, results: Results) -> None:
    start = 0
    stages = _stages(results, results.arms[0])
    for steps, _, length in stages if len(stages) > 1 else ():
        if start:
            axis.axvline(start, color=GREY, linewidth=0.8, linestyle=':', zorder=0)
        axis.annotate(
            f'length {length}', (start, 1), xycoords=('data', 'axes fraction'), xytext=(3, 2),
            textcoords='offset points', fontsize=7.5, color=GREY,
        )  # fmt: skip
        start += steps


def pairs_figure(results: Results) -> Figure | None:
    """Histogram of the p values of all pairs against an even spread."""
    if not results.ablation['all_pairs'] or len(results.arms) < 2:
        return None
    ps = [c.counting.p for c in comparisons.pairs(results) if c.counting.p is not None]
    if not ps:
        return None
    figure = Figure(figsize=(WIDTH, 2.6), layout='constrained')
    axis = figure.subplots()
    bins = np.linspace(0, 1, 11 if len(ps) < 60 else 21)
    axis.hist(ps, bins=bins, color=COLOURS[0], alpha=0.75, edgecolor='white', linewidth=1)
    expected = len(ps) / (len(bins) - 1)
    axis.axhline(expected, color=INK, linewidth=1, linestyle='--')
    axis.annotate(
        'even spread', (1, expected), xytext=(4, 0), textcoords='offset points', fontsize=8, color=INK, va='center',
        annotation_clip=False,
    )  # fmt: skip
    axis.set_xlim(0, 1)
    axis.yaxis.get_major_locator().set_params(integer=True)
    axis.set_xlabel(f'p of a pair ({TESTS[results.ablation["comparison"]]})', fontsize=9)
    axis.set_ylabel('pairs', fontsize=9)
    plain(axis, ('left', 'bottom'))
    return figure
