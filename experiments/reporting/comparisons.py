"""Which pairs of arms are compared in which measures, and what a pair shares."""

from experiments.config_paths import leaves
from experiments.known_metrics import known
from experiments.reporting.results import Measure, Results
from experiments.statistics import Comparison, against_baseline, all_pairs

# Model fields that neither shape nor scale the initial weights.
_NOT_INITIAL = (
    'dropout', 'attention_dropout', 'attention', 'window', 'attend', 'norm_epsilon', 'scan_layers', 'remat', 'dtype'
)  # fmt: skip


def differences(results: Results, measure: Measure) -> list[Comparison]:
    """Every other arm less the baseline; Holm's correction over the arms."""
    return against_baseline(results.values(measure), results.baseline, results.ablation['comparison'])


def any_difference(found: list[Comparison]) -> bool:
    """Whether there is anything to draw."""
    return any(comparison.counting.difference is not None for comparison in found)


def pairs(results: Results) -> list[Comparison]:
    """Every pair of arms in the primary measure."""
    return all_pairs(results.values(results.primary), results.ablation['comparison'])


def secondary(results: Results) -> list[Measure]:
    """Measures that are compared without correction: all but the primary one and those at the arms' own rates.

    Those of downstream tasks have a section of their own.
    """
    others = [m for m in results.measures if m != results.primary and m not in results.downstream]
    return [m for m in others if known(m.metric).kind != 'own']


def one_program(results: Results, first: str, second: str) -> bool:
    """Whether two arms were trained in one compiled program, seed by seed."""
    programs = results.programs
    seeds = {seed for arm, seed in programs if arm == first} & {seed for arm, seed in programs if arm == second}
    return bool(seeds) and all(programs[first, seed] == programs[second, seed] for seed in seeds)


def same_start(results: Results, first: str, second: str) -> bool:
    """Whether all initial weights of two arms are equal within a seed: they are drawn per leaf by seed and name."""
    return _initial(results, first) == _initial(results, second)


def _initial(results: Results, arm: str) -> dict:
    config = results.config['configs'][arm]
    objective = config.get('objective', {})
    start = {name: value for name, value in config['model'].items() if name not in _NOT_INITIAL}
    return start | {name: objective.get(name) for name in ('name', 'generator')}


def config_differences(results: Results) -> dict[str, list]:
    """Dotted field -> its value in each arm, for every field in which any two arms differ; None where it is missing."""
    configs = [leaves(results.config['configs'][arm]) for arm in results.arms]
    names = list(dict.fromkeys(name for each in configs for name in each))
    values = {name: [each.get(name) for each in configs] for name in names}
    return {name: row for name, row in values.items() if any(value != row[0] for value in row)}
