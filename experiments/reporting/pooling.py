"""Which workdirs belong together: the same arms and config, other seeds."""

from data.errors import UserError
from experiments.config_paths import differences
from experiments.reporting.records import Records
from experiments.workdir import MAY_DIFFER

# Words, what was typed, and what a workdir is still growing by; configs are compared arm by arm.
_FREE = ('command', 'cohorts', 'configs', 'ablation.claim', 'ablation.published', 'ablation.arms', 'grid.scores')


def check_poolable(parts: list[Records]) -> None:
    """Refuses workdirs that cannot be averaged over.

    Raises:
      UserError: their configs differ (the fields are named), a replica is in two of them, or the baselines by counting
        show that their held-out text differs.
    """
    first = parts[0]
    for other in parts[1:]:
        differing = _differing(first.config, other.config)
        if differing:
            more = f' and {len(differing) - 8} more' if len(differing) > 8 else ''
            raise UserError(
                f'{first.workdir} and {other.workdir} cannot be pooled; they differ in '
                f'{", ".join(differing[:8])}{more}: report them apart'
            )
    homes: dict[tuple[str, int], Records] = {}
    for part in parts:
        for arm, seed in sorted(part.replicas):
            home = homes.setdefault((arm, seed), part)
            if home is not part:
                raise UserError(
                    f'arm {arm}, seed {seed} is in {home.workdir} and in {part.workdir}: pool workdirs of other seeds'
                )
    tasks: dict[str, tuple[str, Records]] = {}
    for part in parts:
        for task, record in part.tasks.items():
            data, home = tasks.setdefault(task, (record['data'], part))
            if data != record['data']:
                raise UserError(f'{home.workdir} and {part.workdir} have other data for task {task}: report them apart')
    counted: dict[tuple, float] = {}
    for part in parts:
        for row in part.rows:
            if row.seed is None and abs(counted.setdefault(row[:-1], row.value) - row.value) > 1e-6 * abs(row.value):
                raise UserError(
                    f'{part.workdir} has another {row.metric} than {first.workdir}, so their held-out text differs: '
                    'report them apart'
                )


def _differing(first: dict, other: dict) -> list[str]:
    """Names of the fields in which two config.json differ, those of an arm by arm."""
    found = [path for path in differences(first, other) if not any(f'{path}.'.startswith(f'{free}.') for free in _FREE)]
    arms, others = first['ablation']['arms'], other['ablation']['arms']
    found += [f'arm {arm} (only in one)' for arm in {**arms, **others} if arm not in arms or arm not in others]
    arms = [arm for arm in arms if arm in others]
    by_path: dict[str, list[str]] = {}
    for arm in arms:
        for path in differences(first['configs'][arm], other['configs'][arm]):
            if not path.startswith(MAY_DIFFER):
                by_path.setdefault(path, []).append(arm)
    return found + [path + ('' if where == arms else f' (arm {", ".join(where)})') for path, where in by_path.items()]
