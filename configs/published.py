"""A paper's table, as the figures that stand beside ours."""

from collections.abc import Mapping, Sequence

from experiments.ablation import Published


def table(source: str, metrics: Sequence[str], rows: Mapping[str, Sequence[float]]) -> tuple[Published, ...]:
    """One figure for each arm (the key of a row) and metric (in the order of the row's values)."""
    return tuple(
        Published(arm=arm, metric=metric, value=value, source=source)
        for arm, values in rows.items()
        for metric, value in zip(metrics, values, strict=True)
    )
