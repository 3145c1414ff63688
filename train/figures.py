"""What is measured, as records of kind 'figure': the rows of results.csv."""

from train.cohort import Replica


def figure(
    replica: Replica | None,
    stage: int | None,
    step: int | None,
    metric: str,
    value: float,
    eval_rate: float | None = None,
    task: str | None = None,
) -> dict:
    """One row of results.csv; without a replica it belongs to no arm (a baseline by counting)."""
    return {
        'arm': replica.arm if replica else '',
        'seed': replica.seed if replica else None,
        'stage': stage,
        'step': step,
        'metric': metric,
        'eval_rate': eval_rate,
        'task': task,
        'ft_seed': None,
        'value': float(value),
    }
