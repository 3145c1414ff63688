"""Bytes that a compiled step moves between a chip and its memory, from the program's text.

XLA's own 'bytes accessed' counts a loop's body once, what lies in the chip's own memory as if it lay in HBM, and an
asynchronous copy's whole source. Here a loop's body counts as often as it runs, on-chip arrays do not count, others
count with the padding of their tiles, and of an array that is only cut out of or written into, the part alone.
"""

from experiments.planning.hlo import Array, Computation, Instruction, Module

_FREE = {
    *('parameter', 'constant', 'tuple', 'get-tuple-element', 'bitcast', 'after-all', 'partition-id', 'replica-id'),
    *('optimization-barrier', 'iota', 'add-dependency'),
}
_PARTS = ('dynamic-slice', 'slice', 'gather')


def hbm_bytes(module: Module) -> int:
    """Bytes read and written by one chip in a step."""
    return sum(times * moved(module, computation, each) for computation, each, times in module.runs())


def moved(module: Module, computation: Computation, each: Instruction) -> int:
    """Bytes that one instruction reads from HBM and writes to it."""
    if each.opcode in _FREE or each.opcode.endswith('-done'):
        return 0
    if each.opcode in ('copy-start', 'slice-start'):
        # Its result holds source and destination; of the source it reads as much as it writes.
        sized = [array for array in each.result if array.shape]
        smallest = min(array.padded_bytes for array in sized)
        return smallest * sum(array.in_hbm for array in sized)
    arguments = [computation.instructions[name].result for name in each.operands]
    if each.opcode == 'fusion':
        inner = module.computations[each.called['calls'][0]]
        read = sum(_read(module, inner, number, result) for number, result in enumerate(arguments))
        return read + _written(inner, each)
    if each.opcode == 'dynamic-update-slice':
        return 2 * _in_hbm(arguments[1]) if each.result[0].in_hbm else _in_hbm(arguments[1])
    if each.opcode in _PARTS:
        part = _in_hbm(each.result)
        return part + (each.result[0].padded_bytes if _in_hbm(arguments[0]) else 0)
    return sum(map(_in_hbm, arguments)) + _in_hbm(each.result)


def _read(module: Module, inner: Computation, number: int, argument: tuple[Array, ...]) -> int:
    """What a fusion reads of one argument."""
    if not any(array.in_hbm for array in argument):
        return 0
    parts = _parts(module, inner, _parameter(inner, number))
    whole = _in_hbm(argument)
    return whole if parts is None else min(whole, parts)


def _parts(module: Module, inner: Computation, name: str) -> int | None:
    """Bytes that are cut out of a value; None: all of it is used."""
    total = 0
    for user in inner.instructions.values():
        if name not in user.operands:
            continue
        if user.opcode in _PARTS and user.operands[0] == name and name not in user.operands[1:]:
            total += sum(array.padded_bytes for array in user.result)
            continue
        if user.opcode == 'dynamic-update-slice' and user.operands[0] == name:
            continue  # written in place
        if user.opcode == 'tuple' and user.is_root:
            continue  # handed on as it is
        if user.opcode == 'bitcast':
            part = _parts(module, inner, user.name)
        elif user.opcode == 'fusion':
            called = module.computations[user.called['calls'][0]]
            part = _parts(module, called, _parameter(called, user.operands.index(name)))
        else:
            part = None
        if part is None:
            return None
        total += part
    return total


def _written(inner: Computation, each: Instruction) -> int:
    """What a fusion writes: of a result that an update is written into, the update."""
    root = inner.root
    roots = [inner.instructions[name] for name in root.operands] if root.opcode == 'tuple' else [root]
    if len(roots) != len(each.result):
        return _in_hbm(each.result)
    return sum(_written_by(inner, value, array) for value, array in zip(roots, each.result, strict=True))


def _written_by(inner: Computation, value: Instruction, array: Array) -> int:
    while value.opcode == 'bitcast':
        value = inner.instructions[value.operands[0]]
    if not array.in_hbm or value.opcode == 'parameter':
        return 0
    if value.opcode == 'dynamic-update-slice':
        return sum(part.padded_bytes for part in inner.instructions[value.operands[1]].result)
    return array.padded_bytes


def _parameter(computation: Computation, number: int) -> str:
    return next(
        each.name
        for each in computation.instructions.values()
        if each.opcode == 'parameter' and each.literal == str(number)
    )


def _in_hbm(arrays: tuple[Array, ...]) -> int:
    return sum(array.padded_bytes for array in arrays if array.in_hbm)
