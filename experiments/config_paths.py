"""Configs by dotted path, such as masking.corruption_rate or stages.0.steps: looked up, changed, compared."""

import dataclasses
from typing import Any

from experiments.field_types import check_fields


def leaves(config: Any) -> dict[str, Any]:
    """Dotted path -> value for all in a config that is no section; of a dataclass, or of what JSON made of it."""
    return _leaves(config, '')


def differences(first: Any, other: Any) -> dict[str, tuple[Any, Any]]:
    """Dotted path -> (value in the first, value in the other) wherever two configs of one form differ.

    A field that one lacks, as a config.json from before there was one does, counts as None. Of sections in a row (the
    stages) that are more in one than in the other, the row is the field.
    """
    return _differences(first, other, '')


def lookup(config: Any, path: str) -> Any:
    """The value at a dotted path of a dataclass.

    Raises:
      ValueError: there is none.
    """
    value = config
    for name in path.split('.'):
        if name not in (parts := _parts(value)):
            likely = [leaf for leaf in leaves(config) if leaf.endswith(f'.{path}')]
            raise ValueError(f'no field {path!r} in the config' + (f': perhaps {likely[0]}' if likely else ''))
        value = parts[name]
    return value


def changed(config: Any, changes: dict[str, Any]) -> Any:
    """`config` with dotted fields replaced, validated again once all are in place.

    Raises:
      ValueError: a field does not exist, or the result is not valid.
    """
    for path in changes:
        lookup(config, path)
    return _changed(config, [(path.split('.'), value) for path, value in changes.items()], '')


def overlap(path: str, other: str) -> bool:
    """Whether one of two paths is the other, or leads to it."""
    return f'{path}.'.startswith(f'{other}.') or f'{other}.'.startswith(f'{path}.')


def _parts(value: Any) -> dict[str, Any]:
    """What a value is made of, by name, or by number in a tuple."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (tuple, list)):
        return {str(number): item for number, item in enumerate(value)}
    return value if isinstance(value, dict) else {}


def _is_section(value: Any) -> bool:
    return dataclasses.is_dataclass(value) or isinstance(value, dict)


def _is_row(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and any(map(_is_section, value))


def _leaves(value: Any, path: str) -> dict[str, Any]:
    if not (_is_section(value) or _is_row(value)):
        return {path: value}
    return {k: v for name, item in _parts(value).items() for k, v in _leaves(item, _below(path, name)).items()}


def _differences(first: Any, other: Any, path: str) -> dict[str, tuple[Any, Any]]:
    rows = _is_row(first) and _is_row(other) and len(first) == len(other)
    if not (rows or (_is_section(first) and _is_section(other))):
        return {} if first == other else {path: (first, other)}
    one, two = _parts(first), _parts(other)
    pairs = {name: (one.get(name), two.get(name)) for name in {**one, **two}}
    return {k: v for name, pair in pairs.items() for k, v in _differences(*pair, _below(path, name)).items()}


def _changed(node: Any, changes: list[tuple[list[str], Any]], path: str) -> Any:
    children: dict[str, list] = {}
    for names, value in changes:
        if not names:
            return value
        children.setdefault(names[0], []).append((names[1:], value))
    values = {name: _changed(_parts(node)[name], children[name], _below(path, name)) for name in children}
    if isinstance(node, tuple):
        return tuple(values.get(str(number), item) for number, item in enumerate(node))
    check_fields(type(node), values, path)
    return dataclasses.replace(node, **values)


def _below(path: str, name: str) -> str:
    return f'{path}.{name}' if path else name
