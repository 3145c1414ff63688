"""Counts of what was read and dropped, and why."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """What a pass over a corpus met."""

    read: Counter = field(default_factory=Counter)
    """Of files, lines (of JSON) and documents."""
    dropped: Counter = field(default_factory=Counter)
    """Reason -> lines or documents left out."""
    mended: Counter = field(default_factory=Counter)
    """What was repaired in the texts that were read."""

    @classmethod
    def of(cls, counts: dict[str, dict[str, int]]) -> 'Tally':
        """From what `as_dict` gives."""
        return cls(**{name: Counter(found) for name, found in counts.items()})

    def add(self, other: 'Tally') -> None:
        """Takes up another pass's counts."""
        for name, counts in vars(self).items():
            counts.update(getattr(other, name))

    def as_dict(self) -> dict[str, dict[str, int]]:
        return {
            name: {what: count for what, count in sorted(counts.items()) if count}
            for name, counts in vars(self).items()
        }


def sentence(counts: dict[str, dict[str, int]]) -> str:
    """'read 1 file, 56 lines, 48 documents; dropped 9 (duplicates 3, not JSON 6)', from `Tally.as_dict`."""
    units = [(unit, counts['read'][unit]) for unit in ('files', 'lines', 'documents') if unit in counts['read']]
    read = ', '.join(f'{count:,} {unit if count != 1 else unit.removesuffix("s")}' for unit, count in units)
    parts = [f'read {read or "nothing"}']
    for verb in ('dropped', 'mended'):
        reasons = ', '.join(f'{what} {count:,}' for what, count in counts[verb].items())
        if reasons:
            parts.append(f'{verb} {sum(counts[verb].values()):,} ({reasons})')
        elif verb == 'dropped':
            parts.append('dropped none')
    return '; '.join(parts)
