"""Whether a value is of the type that a config field states: dataclasses themselves do not look."""

import dataclasses
import math
import types
import typing
from typing import Any, Literal


def check_fields(kind: type, values: dict[str, Any], path: str = '') -> None:
    """Checks values for fields of a config dataclass, and what is inside them.

    Raises:
      ValueError: one is of another type, or none of a Literal's words, or too large a number: the field is named.
    """
    hints = typing.get_type_hints(kind)
    for name, value in values.items():
        here = f'{path}.{name}' if path else name
        if not fits(value, hints[name]):
            raise ValueError(f'{here} is {value!r}: use {_words(hints[name])}')
        if isinstance(value, int) and value >= 2**31 and not name.endswith('_tokens'):  # devices count in 32 bits
            raise ValueError(f'{here} is {value}: use a number below 2**31')
        inside = {f'{here}.{i}': item for i, item in enumerate(value)} if isinstance(value, tuple) else {here: value}
        for there, item in inside.items():
            if dataclasses.is_dataclass(item):
                check_fields(type(item), {f.name: getattr(item, f.name) for f in dataclasses.fields(item)}, there)


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, made of those that configs use; an int will do for a float."""
    origin, inner = typing.get_origin(kind) or kind, typing.get_args(kind)
    if origin is Literal:
        return value in inner
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, each) for each in inner)
    if origin is tuple:
        kinds = inner[:1] * len(value) if inner[-1] is Ellipsis and isinstance(value, tuple) else inner
        return isinstance(value, tuple) and len(value) == len(kinds) and all(map(fits, value, kinds))
    if isinstance(value, bool):
        return kind is bool
    if isinstance(value, float) and not math.isfinite(value):
        return False
    return isinstance(value, (int, float) if kind is float else origin)


def _words(kind: Any) -> str:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return ' or '.join(map(str, inner))
    if origin in (typing.Union, types.UnionType):
        return ' or '.join(map(_words, inner))
    if origin is tuple and inner[-1] is Ellipsis:
        return f'a tuple, each entry {_words(inner[0])}'
    if origin is tuple:
        return f'a tuple of {", ".join(map(_words, inner))}'
    names = {int: 'a whole number', float: 'a number', bool: 'True or False', str: 'a text', type(None): 'None'}
    return names.get(kind, f'a {getattr(kind, "__name__", kind)}')
