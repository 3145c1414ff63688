"""A compiled program's text (XLA's HLO), read: its instructions and how often each runs."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

BITS = {
    **dict.fromkeys(('pred', 's8', 'u8'), 8),
    **dict.fromkeys(('s4', 'u4'), 4),
    **dict.fromkeys(('bf16', 'f16', 's16', 'u16'), 16),
    **dict.fromkeys(('f32', 's32', 'u32'), 32),
    **dict.fromkeys(('f64', 's64', 'u64', 'c64'), 64),
}
_ARRAY = re.compile(r'(\w+)\[([\d,]*)\](?:\{([^}]*)\})?')
_HEADER = re.compile(r'^(ENTRY )?%?([\w.\-]+) \(.*\{$')
_INSTRUCTION = re.compile(r'^\s+(ROOT )?%?([\w.\-]+) = (.*)$')
_CALLED = re.compile(r'(calls|to_apply|body|condition)=%?([\w.\-]+)|(branch_computations)=\{([^}]*)\}')


@dataclass(frozen=True)
class Array:
    """One array of an instruction's result."""

    kind: str
    """Such as bf16."""
    shape: tuple[int, ...]
    layout: str
    """As XLA writes it: axes from the fastest, tiles T(...), memory space S(...)."""

    @property
    def in_hbm(self) -> bool:
        """False where it lies in the chip's own memory."""
        return 'S(' not in self.layout

    @property
    def bytes(self) -> int:
        """Without the padding of tiles."""
        return math.prod(self.shape) * BITS.get(self.kind, 0) // 8

    @property
    def padded_bytes(self) -> int:
        """As it lies in memory: its last axes filled up to whole tiles."""
        order, _, rest = self.layout.partition(':')
        axes = [int(axis) for axis in order.split(',') if axis]
        tile = re.match(r'T\(([\d,]+)\)', rest)
        if not tile or not axes:
            return self.bytes
        shape = list(self.shape)
        for axis, size in zip(axes, reversed([int(size) for size in tile[1].split(',')]), strict=False):
            shape[axis] = -(-shape[axis] // size) * size
        return math.prod(shape) * BITS.get(self.kind, 0) // 8


@dataclass(frozen=True)
class Instruction:
    name: str
    opcode: str
    result: tuple[Array, ...]
    """The arrays of the result, of a tuple all that are in it."""
    operands: tuple[str, ...]
    """Names of instructions of the same computation."""
    literal: str
    """What stands between its parentheses: a parameter's number, a constant's value."""
    attributes: str
    """All that stands behind the operands."""
    is_root: bool

    @property
    def called(self) -> dict[str, tuple[str, ...]]:
        """Computations that it names, by how: calls, to_apply, body, condition, branch_computations."""
        found: dict[str, tuple[str, ...]] = {}
        for how, one, hows, several in _CALLED.findall(self.attributes):
            found[how or hows] = tuple(name.strip(' %') for name in (one or several).split(','))
        return found

    @property
    def source(self) -> str:
        """JAX's name for it (op_name)."""
        found = re.search(r'op_name="([^"]*)"', self.attributes)
        return found[1] if found else ''


@dataclass
class Computation:
    name: str
    instructions: dict[str, Instruction] = field(default_factory=dict)
    """In the order in which they run."""

    @property
    def integers(self) -> list[int]:
        """Values of its scalar integer constants."""
        constants = [each for each in self.instructions.values() if each.opcode == 'constant']
        return [
            int(each.literal)
            for each in constants
            if re.fullmatch(r'[su]\d+', each.result[0].kind) and re.fullmatch(r'-?\d+', each.literal)
        ]

    @property
    def root(self) -> Instruction:
        return next(instruction for instruction in self.instructions.values() if instruction.is_root)


@dataclass(frozen=True)
class Module:
    computations: dict[str, Computation]
    entry: str

    def runs(self) -> Iterator[tuple[Computation, Instruction, int]]:
        """Every instruction that the device carries out, and how many times, with a fusion as one instruction.

        A loop's body counts as often as it runs. Of a conditional all branches count.
        """
        yield from self._runs(self.entry, 1)

    def _runs(self, name: str, times: int) -> Iterator[tuple[Computation, Instruction, int]]:
        computation = self.computations[name]
        for instruction in computation.instructions.values():
            called = instruction.called
            if instruction.opcode == 'while':
                trips = self.trips(computation, instruction)
                yield from self._runs(called['body'][0], times * trips)
            elif instruction.opcode in ('call', 'conditional'):
                for branch in (*called.get('to_apply', ()), *called.get('branch_computations', ())):
                    yield from self._runs(branch, times)
            else:
                yield computation, instruction, times

    def trips(self, computation: Computation, loop: Instruction) -> int:
        """How often the body of a `while` runs: the constant that its counter, from 0, is compared with.

        Raises:
          ValueError: the loop's end is no constant.
        """
        known = re.search(r'"known_trip_count":\{"n":"(\d+)"\}', loop.attributes)
        if known:
            return int(known[1])
        condition = self.computations[loop.called['condition'][0]]
        fused = [name for each in condition.instructions.values() for name in each.called.get('calls', ())]
        ends = [end for each in (condition, *(self.computations[name] for name in fused)) for end in each.integers]
        if len(set(ends)) != 1:
            raise ValueError(f'the number of rounds of {loop.name} in {computation.name} is not known')
        return ends[0]

    def inside(self, instruction: Instruction) -> Iterator[tuple[Computation, Instruction]]:
        """The instructions of what a fusion or an asynchronous wrapper calls, and of what those call."""
        for name in instruction.called.get('calls', ()):
            computation = self.computations[name]
            for inner in computation.instructions.values():
                yield computation, inner
                yield from self.inside(inner)


def arrays(text: str) -> tuple[Array, ...]:
    """The arrays in a result's type, as HLO writes it."""
    return tuple(
        Array(kind, tuple(int(size) for size in shape.split(',') if size), layout)
        for kind, shape, layout in _ARRAY.findall(text)
    )


def parse(text: str) -> Module:
    """Reads `compiled.as_text()`."""
    computations: dict[str, Computation] = {}
    entry, here, lines = '', None, []
    for line in text.splitlines():
        if here is None:
            header = _HEADER.match(line)
            if header:
                here = computations[header[2]] = Computation(header[2])
                entry = header[2] if header[1] else entry
        elif line != '}' and not _INSTRUCTION.match(line):
            lines[-1] += line  # a kernel's attributes go over several lines
        else:
            if lines:
                instruction = _instruction(lines.pop())
                here.instructions[instruction.name] = instruction
            if line == '}':
                here = None
            else:
                lines.append(line)
    return Module(computations, entry)


def _instruction(line: str) -> Instruction:
    root, name, rest = _INSTRUCTION.match(line).groups()
    end = _closing(rest, 0) + 1 if rest.startswith('(') else rest.index(' ')
    result, rest = rest[:end], rest[end:].strip()
    opening = rest.index('(')
    closing = _closing(rest, opening)
    opcode, literal = rest[:opening], rest[opening + 1 : closing]
    operands = tuple(re.findall(r'%([\w.\-]+)', literal)) if opcode != 'constant' else ()
    return Instruction(name, opcode, arrays(result), operands, literal, rest[closing + 1 :], bool(root))


def _closing(text: str, start: int) -> int:
    """Index of the parenthesis that closes the one at `start`."""
    depth = 0
    for index in range(start, len(text)):
        depth += {'(': 1, ')': -1}.get(text[index], 0)
        if depth == 0:
            return index
    return len(text) - 1
