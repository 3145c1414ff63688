"""Lines of arms, with bands and their names beside their ends; and what all pictures have in common."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito (2008): told apart with every kind of colour vision. Their yellow is too faint on white.
COLOURS = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9', '#000000')
DASHES = {'-': '', '--': ' (dashed)', ':': ' (dotted)'}
INK, GREY, FAINT = '#222222', '#8a8a8a', '#d9d9d9'
WIDTH = 7.2
"""Inches of every picture; a page shows them at most 1,440 pixels wide, at DPI."""
DPI = 200


def draw_lines(
    curves: Mapping[str, tuple[list[float], np.ndarray]], x_label: str, y_label: str, levels: Mapping[str, float]
) -> tuple[Figure, Axes]:
    """The mean over seeds of each arm, with a band from the lowest seed to the highest.

    Args:
      curves: arm -> places, and values [places, seeds]; an arm without places has no line.
      levels: name -> height of a dashed line right across.
    """
    figure = Figure(figsize=(WIDTH, 3.6), layout='constrained')
    axis = figure.subplots()
    ends = []
    for index, (arm, (x, values_PxS)) in enumerate(curves.items()):
        if not x:
            continue
        colour, dash = style(index)
        axis.fill_between(x, np.nanmin(values_PxS, 1), np.nanmax(values_PxS, 1), color=colour, alpha=0.18, linewidth=0)
        mean = np.nanmean(values_PxS, axis=1)
        axis.plot(x, mean, dash, color=colour, linewidth=1.6, marker='o' if len(x) < 25 else '', markersize=3)
        ends.append((literal(arm) + DASHES[dash], colour, mean[-1]))
    for name, height in levels.items():
        axis.axhline(height, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
        ends.append((name, GREY, height))
    label_ends(axis, ends)
    axis.set_xlabel(x_label, fontsize=9)
    axis.set_ylabel(y_label, fontsize=9)
    axis.set_xlim(left=0)
    by_height(axis)
    return figure, axis


def style(index: int) -> tuple[str, str]:
    """Colour and dash of a line."""
    return COLOURS[index % len(COLOURS)], list(DASHES)[index // len(COLOURS) % len(DASHES)]


def by_height(axis: Axes) -> None:
    """Makes it a picture that is read off by height."""
    axis.grid(axis='y', color=FAINT, linewidth=0.6)
    axis.set_axisbelow(True)
    plain(axis, ('left', 'bottom'))


def label_ends(axis: Axes, ends: list[tuple[str, str, float]]) -> None:
    """Each line's name beside its end, moved apart where they would overlap; curves cross nothing there."""
    low, high = axis.get_ylim()
    ends = sorted(ends, key=lambda end: end[2])
    places = _apart([end[2] for end in ends], 0.055 * (high - low))
    for (name, colour, y), place in zip(ends, places, strict=True):
        axis.annotate(
            name, (1, y), xycoords=('axes fraction', 'data'), xytext=(1.015, place),
            textcoords=('axes fraction', 'data'), fontsize=9, color=colour, va='center', annotation_clip=False,
        )  # fmt: skip


def _apart(heights: list[float], least: float) -> list[float]:
    """Rising heights, moved as little as it takes to be `least` apart: each crowd is spread around its own mean."""
    crowds: list[list[float]] = []

    def spread(crowd: list[float]) -> list[float]:
        return [sum(crowd) / len(crowd) + least * (i - (len(crowd) - 1) / 2) for i in range(len(crowd))]

    for height in heights:
        crowds.append([height])
        while len(crowds) > 1 and spread(crowds[-1])[0] - spread(crowds[-2])[-1] < least:
            crowds[-2:] = [crowds[-2] + crowds[-1]]
    return [place for crowd in crowds for place in spread(crowd)]


def literal(name: str) -> str:
    """A name with its dollar signs, which matplotlib would take for mathematics."""
    return name.replace('$', r'\$')


def plain(axis: Axes, spines: tuple[str, ...]) -> None:
    for side, spine in axis.spines.items():
        spine.set_visible(side in spines)
        spine.set_color(GREY)
    axis.tick_params(labelsize=8.5, color=GREY, labelcolor=INK)
