"""What a compiled TPU program moves through the chip's main memory (HBM), read from its text."""

import math
import re
from typing import NamedTuple

_BYTES = {'pred': 1, 's8': 1, 'u8': 1, 'bf16': 2, 'f16': 2, 's16': 2, 'u16': 2, 'f32': 4, 's32': 4, 'u32': 4}
_ARRAY = re.compile(r'\b([a-z]+\d*)\[([\d,]*)\](?:\{([\d,]*):?([^}]*)\})?')
_COMPUTATION = re.compile(r'^(ENTRY )?%?([\w.-]+) \(.*\{$')
_INSTRUCTION = re.compile(r'^\s+(?:ROOT )?%?([\w.-]+) = (.*)$')
_FREE = {'parameter', 'constant', 'tuple', 'get-tuple-element', 'bitcast', 'while', 'after-all', 'partition-id'}
"""Operations that move nothing."""


class _Instruction(NamedTuple):
    name: str
    shape: str
    """Of its result, as text."""
    operation: str
    operands: list[str]
    rest: str


def hbm_bytes(program: str) -> int:
    """Bytes that one run reads from HBM and writes to it. A loop's body counts once.

    XLA's own count, `bytes accessed`, takes arrays in on-chip memory like those in HBM, a copy between the two as three
    arrays and a slice's source whole, and leaves out what fills an array's tiles. Here an instruction counts for the
    arrays that it reads or writes in HBM, tiles filled, and an asynchronous copy for what it moves.

    Args:
      program: `compiled.as_text()`.
    """
    computations = _computations(program)
    entry = next(name for name, (is_entry, _) in computations.items() if is_entry)
    total, waiting = 0, [entry]
    while waiting:
        _, instructions = computations[waiting.pop()]
        shapes = {each.name: each.shape for each in instructions}
        for each in instructions:
            if each.operation == 'while':
                waiting += re.findall(r'body=%?([\w.-]+)', each.rest)
            total += _moved(each, shapes)
    return total


def _moved(instruction: _Instruction, shapes: dict[str, str]) -> int:
    operation = instruction.operation
    if operation in _FREE or operation.endswith('-done'):
        return 0
    written = _arrays(instruction.shape)
    if operation in ('copy-start', 'slice-start'):
        # Both ends are in the result, with a counter; the smaller one is what moves.
        return min((size for size, _ in written if size > 64), default=0)
    if operation.endswith('-start'):
        written = written[len(written) // 2 :]
    read = [array for name in instruction.operands for array in _arrays(shapes.get(name, ''))]
    return sum(size for size, in_hbm in (*written, *read) if in_hbm)


def _arrays(shape: str) -> list[tuple[int, bool]]:
    """Of each array in a shape's text: bytes, tiles filled, and whether it lies in HBM."""
    found = []
    for kind, sizes, order, rest in _ARRAY.findall(shape):
        if kind in _BYTES:
            sizes = [int(size) for size in sizes.split(',') if size]
            tile = [int(size) for size in re.findall(r'^T\(([\d,]+)\)', rest)[0].split(',')] if 'T(' in rest else []
            # The order goes from the fastest axis; the tile's last number is that axis's.
            for axis, size in zip((int(axis) for axis in order.split(',') if axis), reversed(tile), strict=False):
                sizes[axis] = -(-sizes[axis] // size) * size
            found.append((math.prod(sizes) * _BYTES[kind], not re.search(r'S\([1-9]', rest)))
    return found


def _computations(program: str) -> dict[str, tuple[bool, list[_Instruction]]]:
    """By name: whether it is the entry, and its instructions."""
    found, current = {}, None
    for line in program.splitlines():
        if line == '}':
            current = None
        elif heading := _COMPUTATION.match(line):
            current = []
            found[heading[2]] = (bool(heading[1]), current)
        elif current is not None and (parts := _INSTRUCTION.match(line)):
            name, text = parts.groups()
            end = _closing(text) + 1 if text.startswith('(') else text.index(' ')
            operation, _, call = text[end:].strip().partition('(')
            close = _closing('(' + call)
            current.append(
                _Instruction(name, text[:end], operation, re.findall(r'%([\w.-]+)', call[:close]), call[close:])
            )
    return found


def _closing(text: str) -> int:
    """Where the parenthesis that the text begins with is closed; its length where another line closes it."""
    depth = 0
    for at, letter in enumerate(text):
        depth += (letter == '(') - (letter == ')')
        if depth == 0:
            return at
    return len(text)
