"""Quality against masking rate, for ablations that cross the rate with something else."""

import copy
import json

import numpy as np
from matplotlib.figure import Figure as Picture

from experiments.known_metrics import known
from experiments.reporting.document import Figure, Section
from experiments.reporting.lines import DASHES, WIDTH, by_height, label_ends, literal, style
from experiments.reporting.results import Results
from experiments.reporting.wording import measure_name, percent

RATES_PNG = 'rates.png'


def rates_section(results: Results) -> Section | None:
    """The primary measure by corruption rate, as Wettig et al. 2023 plot it (Figures 4 and 5)."""
    if not rate_lines(results):
        return None
    grid = results.config['grid']
    besides = f', in {grid["field"]} (chosen for each)' if grid else ''
    caption = (
        f'The primary measure, {measure_name(results.primary)}, by the share of tokens that is corrupted. A line '
        f'joins arms that differ in nothing but that rate{besides} and, where FLOPs are equal, in steps. Large dots '
        'are means over seeds, small ones the seeds; those of one rate stand side by side.'
    )
    alt = f'{measure_name(results.primary)} by corruption rate'
    return Section('Quality against masking rate', [Figure(RATES_PNG, alt, caption)])


def rate_lines(results: Results) -> dict[str, list[str]]:
    """Name of a line -> its arms that have figures, by rising rate; empty unless two lines have two rates or more.

    Arms whose rate changes over the run stand at no rate.
    """
    lines: dict[str, list[str]] = {}
    measured = np.isfinite(results.values(results.primary)).any(1)
    arms = [arm for arm, has in zip(results.arms, measured, strict=True) if has]
    for arm in sorted(arms, key=lambda arm: _rate(results, arm)):
        if not results.config['configs'][arm]['masking']['rate_points']:
            lines.setdefault(_all_but_rate(results, arm), []).append(arm)
    found = [arms for arms in lines.values() if len({_rate(results, arm) for arm in arms}) > 1]
    found.sort(key=lambda arms: min(map(results.arms.index, arms)))
    if len(found) < 2:
        return {}
    names = [_common(arms) for arms in found]
    if '' in names or len(set(names)) < len(names):
        names = [f'{arms[0]} to {arms[-1]}' for arms in found]
    return dict(zip(names, found, strict=True))


def rates_figure(results: Results) -> Picture | None:
    """One line for all arms that differ in their corruption rate alone."""
    lines = rate_lines(results)
    if not lines:
        return None
    values_AxS = results.values(results.primary)
    rates = sorted({_rate(results, arm) for arms in lines.values() for arm in arms})
    step = min(np.diff(rates)) / (6 * len(lines))
    figure = Picture(figsize=(WIDTH, 3.6), layout='constrained')
    axis = figure.subplots()
    ends = []
    for number, (name, arms) in enumerate(lines.items()):
        values_RxS = values_AxS[[results.arms.index(arm) for arm in arms]]
        # Beside each other, or seeds of one line would hide another's.
        x = np.array([_rate(results, arm) for arm in arms]) + step * (number - (len(lines) - 1) / 2)
        (colour, dash), mean_R = style(number), np.nanmean(values_RxS, axis=1)
        axis.plot(x, values_RxS, 'o', color=colour, markersize=2.5, alpha=0.5)
        axis.plot(x, mean_R, dash, color=colour, linewidth=1.6, marker='o', markersize=5)
        ends.append((literal(name) + DASHES[dash], colour, mean_R[-1]))
    label_ends(axis, ends)
    axis.set_xticks(rates, [percent(rate) for rate in rates])
    axis.set_xlabel('corruption rate', fontsize=9)
    axis.set_ylabel(f'{measure_name(results.primary)}, {known(results.primary.metric).unit}', fontsize=9)
    by_height(axis)
    return figure


def _rate(results: Results, arm: str) -> float:
    return results.config['configs'][arm]['masking']['corruption_rate']


def _all_but_rate(results: Results, arm: str) -> str:
    """An arm's config without its corruption rate and what follows from that: a hyperparameter that was chosen for it,
    and, unless arms say how many, its steps, since equal FLOPs are other steps at another rate."""
    whole = config = copy.deepcopy(results.config['configs'][arm])
    masking, every = config['masking'], results.config['configs'].values()
    if any(each['masking']['prediction_rate'] is not None for each in every):
        # Where some arm predicts another share than it corrupts, each arm's own share belongs to what it is.
        own = masking['prediction_rate']
        masking['prediction_rate'] = masking['corruption_rate'] if own is None else own
    del masking['corruption_rate']
    if not any(field.startswith('stages') for changes in results.ablation['arms'].values() for field in changes):
        config['stages'] = [{**stage, 'steps': 0} for stage in config['stages']]
    if results.config['grid']:
        *path, field = results.config['grid']['field'].split('.')
        for part in path:
            config = config[int(part) if isinstance(config, list) else part]
        config[field] = None
    return json.dumps(whole, sort_keys=True)


def _common(arms: list[str]) -> str:
    """What the names of a line's arms have in common: 'words' of 'words 15%' and 'words 40%'."""
    for separator in (', ', ' '):
        parts = [arm.split(separator) for arm in arms]
        if common := [part for part in parts[0] if all(part in other for other in parts)]:
            return separator.join(common)
    return ''
