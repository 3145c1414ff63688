"""Configs as JSON and back."""

import dataclasses
import json
import types
import typing
from typing import Any, TypeVar

T = TypeVar('T')


def to_json(value: Any) -> Any:
    """As JSON gives it back: tuples are lists, configs are dicts."""
    return json.loads(json.dumps(value, default=dataclasses.asdict))


def from_json(kind: type[T], value: Any) -> T:
    """A dataclass, with those inside it, from what `dataclasses.asdict` and JSON made of it.

    Raises:
      ValueError: a field does not exist, or the dataclass refuses a value.
    """
    if value is None:
        return None
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        unknown = set(value) - set(hints)
        if unknown:
            raise ValueError(f'unknown field {sorted(unknown)[0]!r} for {kind.__name__}')
        return kind(**{name: from_json(hints[name], item) for name, item in value.items()})
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return from_json(next(arg for arg in args if arg is not type(None)), value)
    if origin is tuple:
        kinds = [args[0]] * len(value) if args[-1] is Ellipsis else args
        return tuple(from_json(each, item) for each, item in zip(kinds, value, strict=True))
    return float(value) if kind is float else value
