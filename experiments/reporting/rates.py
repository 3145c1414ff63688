"""Quality against masking rate, for ablations that cross the rate with something else."""

import json

import numpy as np
from matplotlib.figure import Figure

from experiments.known_metrics import known
from experiments.reporting.document import Figure as Picture
from experiments.reporting.document import Section
from experiments.reporting.lines import COLOURS, WIDTH, grid, label_ends, literal
from experiments.reporting.results import Results
from experiments.reporting.wording import measure_name, percent

RATES_PNG = 'rates.png'
CORRUPTED, PREDICTED = 'masking.corruption_rate', 'masking.prediction_rate'


def rates_section(results: Results) -> Section | None:
    """The primary measure by corruption rate, as Wettig et al. 2023 plot it (Figures 4 and 5)."""
    if not rate_lines(results):
        return None
    caption = (
        f'The primary measure, {measure_name(results.primary)}, by the share of tokens that is corrupted: arms that '
        'differ in nothing but that rate, and in steps where FLOPs are equal, share a line. Large dots are means over '
        'seeds, small ones the seeds; those of one rate stand side by side.'
    )
    alt = f'{measure_name(results.primary)} by corruption rate'
    return Section('Quality against masking rate', [Picture(RATES_PNG, alt, caption)])


def rate_lines(results: Results) -> dict[str, list[str]]:
    """Name of a line -> its arms that have figures, by rising rate; empty unless two lines have two rates or more."""
    lines: dict[str, list[str]] = {}
    measured = np.isfinite(results.values(results.primary)).any(1)
    for arm in np.array(results.arms)[measured].tolist():
        lines.setdefault(_other_changes(results, arm), []).append(arm)
    found = [arms for arms in lines.values() if len({_rate(results, arm) for arm in arms}) > 1]
    if len(found) < 2:
        return {}
    names = [_common(arms) for arms in found]
    if len(set(names)) < len(names):
        names = [arms[0] for arms in found]
    return {name: sorted(arms, key=lambda arm: _rate(results, arm)) for name, arms in zip(names, found, strict=True)}


def rates_figure(results: Results) -> Figure | None:
    """One line for all arms that differ in their corruption rate alone."""
    lines = rate_lines(results)
    if not lines:
        return None
    values_AxS = results.values(results.primary)
    rates = sorted({_rate(results, arm) for arms in lines.values() for arm in arms})
    step = min(np.diff(rates)) / (6 * len(lines))
    figure = Figure(figsize=(WIDTH, 3.6), layout='constrained')
    axis = figure.subplots()
    ends = []
    for number, (name, arms) in enumerate(lines.items()):
        values_RxS = values_AxS[[results.arms.index(arm) for arm in arms]]
        # Beside each other, or seeds of one line would hide another's.
        x = np.array([_rate(results, arm) for arm in arms]) + step * (number - (len(lines) - 1) / 2)
        colour, mean_R = COLOURS[number % len(COLOURS)], np.nanmean(values_RxS, axis=1)
        axis.plot(x, values_RxS, 'o', color=colour, markersize=2.5, alpha=0.5)
        axis.plot(x, mean_R, color=colour, linewidth=1.6, marker='o', markersize=5)
        ends.append((literal(name), colour, mean_R[-1]))
    label_ends(axis, ends)
    axis.set_xticks(rates, [percent(rate) for rate in rates])
    axis.set_xlabel('corruption rate', fontsize=9)
    axis.set_ylabel(f'{measure_name(results.primary)}, {known(results.primary.metric).unit}', fontsize=9)
    grid(axis)
    return figure


def _rate(results: Results, arm: str) -> float:
    return results.config['configs'][arm]['masking']['corruption_rate']


def _other_changes(results: Results, arm: str) -> str:
    """What an arm is but for its corruption rate. Where some arm predicts another share than it corrupts, no rate is
    of both: then each arm's own share belongs to what it is."""
    arms = results.ablation['arms']
    changes = {field: value for field, value in arms[arm].items() if field != CORRUPTED}
    if any(PREDICTED in fields for fields in arms.values()):
        own = results.config['configs'][arm]['masking']['prediction_rate']
        changes[PREDICTED] = _rate(results, arm) if own is None else own
    return json.dumps(changes, sort_keys=True)


def _common(arms: list[str]) -> str:
    """What the names of a line's arms have in common: 'words' of 'words 15%' and 'words 40%'."""
    for separator in (', ', ' '):
        parts = [arm.split(separator) for arm in arms]
        if common := [part for part in parts[0] if all(part in other for other in parts)]:
            return separator.join(common)
    return arms[0]
