"""Plans as text, as a table and as JSON."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any

from experiments.planning.estimate import StagePlan
from experiments.planning.memory import Memory
from experiments.reporting.document import Table
from experiments.reporting.table import table
from experiments.reporting.wording import quantity
from train.chips import GIB


def show(plans: Iterable[StagePlan], as_json: bool) -> None:
    """Prints plans as they come, and what follows from all of them; or all as one JSON list."""
    found = []
    for plan in plans:
        found.append(plan)
        if not as_json:
            print(text(plan), flush=True)
    print(json.dumps(listed(found), indent=1) if as_json else closing(found))


def text(plan: StagePlan) -> str:
    """One stage on one slice."""
    shape = ' x '.join(f'{axis} {size}' for axis, size in plan.mesh.items())
    times = ', '.join(f'{name} {_time(seconds)}' for name, seconds in plan.seconds.items())
    lines = [
        ('chips', f'{plan.chips}, mesh {shape}'),
        ('fits', _fits(plan.memory)),
        ('HBM', f'{_memory(plan.memory.total)}: {_parts(plan.memory)}'),
        ('FLOPs', _flops(plan)),
        *_moved(plan),
        ('at the peaks', f'{times}: bound by {plan.bound}'),
        ('at most', f'MFU {_share(plan.mfu)}, {plan.tokens_per_second:,.0f} tokens/s'),
        ('at least', f'{plan.chip_hours:,.1f} chip-hours for the stage'),
    ]
    if plan.largest_batch is not None:
        lines.append(('largest batch', f'{plan.largest_batch:,} rows'))
    title = (
        f'{plan.topology}, cohort {plan.cohort}, replicas: {plan.replicas}, stage {plan.stage}: length {plan.length}, '
        f'batch {plan.batch_size:,}, {plan.steps:,} steps. Bytes and times are of a chip and a step.'
    )
    return '\n'.join([title, *(f'  {name:<14}{value}' for name, value in lines)])


def closing(plans: Sequence[StagePlan]) -> str:
    """What is said of all stages together, and of several slices beside each other."""
    several = len(_by_topology(plans)) > 1
    return '\n'.join(['', *([comparison(plans), ''] if several else []), totals(plans)])


def totals(plans: Sequence[StagePlan]) -> str:
    """Chip-hours of the whole recipe on each slice."""
    lines = []
    for name, here in _by_topology(plans).items():
        fits = all(plan.memory.fits for plan in here)
        hours = sum(plan.chip_hours for plan in here)
        chips = here[0].chips
        whole = f'at least {hours:,.1f} chip-hours, {hours / chips:,.1f} hours on {chips} chips'
        lines.append(f'{name}, all stages: {whole if fits else "does not fit"}')
    return '\n'.join(lines)


def comparison(plans: Sequence[StagePlan]) -> str:
    """Slices beside each other, a row for each stage."""
    columns = (
        *('slice', 'chips', 'cohort', 'length', 'batch', 'GiB a chip', 'of', 'compute', 'HBM', 'interconnect'),
        *('bound by', 'MFU at most', 'tokens/s at most', 'chip-hours at least'),
    )
    rows = []
    for plan in plans:
        memory = plan.memory
        times = [
            _time(plan.seconds[name]) if name in plan.seconds else '' for name in ('compute', 'HBM', 'interconnect')
        ]
        ends = (
            (plan.bound, _share(plan.mfu), f'{plan.tokens_per_second:,.0f}', f'{plan.chip_hours:,.1f}')
            if memory.fits
            else ('does not fit', '', '', '')
        )
        rows.append(
            [
                *(plan.topology, str(plan.chips), plan.cohort, str(plan.length), f'{plan.batch_size:,}'),
                *(f'{memory.total / GIB:.2f}', f'{memory.capacity / GIB:.2f}'),
                *times,
                *ends,
            ]
        )
    return table(Table('', columns, rows))


def listed(plans: Sequence[StagePlan]) -> list[dict[str, Any]]:
    """Every figure of every plan, in bytes, seconds and operations."""
    derived = ('bound', 'step_seconds', 'mfu', 'tokens_per_second', 'chip_hours')
    return [
        dataclasses.asdict(plan)
        | {name: getattr(plan, name) for name in derived}
        | {'fits': plan.memory.fits, 'left': plan.memory.left, 'xla_ratio': plan.check and plan.check.ratio}
        for plan in plans
    ]


def _by_topology(plans: Sequence[StagePlan]) -> dict[str, list[StagePlan]]:
    found: dict[str, list[StagePlan]] = {}
    for plan in plans:
        found.setdefault(plan.topology, []).append(plan)
    return found


def _fits(memory: Memory) -> str:
    if memory.fits:
        return f'yes, {_memory(memory.left)} of {_memory(memory.capacity)} left'
    return f'NO: {_memory(-memory.left)} more than the {_memory(memory.capacity)} that there are; times: compute alone'


def _parts(memory: Memory) -> str:
    names = ('parameters', 'optimizer', 'activations', 'temporaries', 'batch', 'code')
    return ', '.join(f'{name} {_memory(size)}' for name in names if (size := getattr(memory, name)))


def _flops(plan: StagePlan) -> str:
    own, together = plan.useful_flops, plan.carried_out_flops
    found = f'{quantity(own, "FLOP")} in all, counted analytically'
    if together > 1.001 * own:
        found += f'; {quantity(together, "FLOP")} carried out (target slots of the highest rate for all arms, or remat)'
    if plan.check:
        found += f"; XLA's count of an unrolled one-replica step is {plan.check.ratio:.2f} of the analytic one"
    return found


def _moved(plan: StagePlan) -> list[tuple[str, str]]:
    """What is read, written and sent; nothing where the step was not compiled."""
    if plan.hbm_bytes is None:
        return []
    xla = quantity(plan.xla_bytes, 'B')
    lines = [('HBM traffic', f'{quantity(plan.hbm_bytes, "B")} (XLA\'s "bytes accessed": {xla})')]
    for each in plan.collectives:
        sent = f'{each.count}, {quantity(each.bytes, "B")}, {_time(each.seconds)}'
        lines.append(('collectives', f'{each.kind} over {" x ".join(each.axes)}: {sent}'))
    return lines if plan.collectives else [*lines, ('collectives', 'none')]


def _share(value: float) -> str:
    return f'{100 * value:.0f}%'


def _memory(size: float) -> str:
    return f'{size / GIB:.2f} GiB' if size >= 0.01 * GIB else f'{size / 2**20:.2f} MiB'


def _time(seconds: float) -> str:
    return f'{1e3 * seconds:.2f} ms' if seconds >= 1e-4 else f'{1e6 * seconds:.1f} us'
