"""What is read out of compiled programs: how often things run, bytes moved, sent and kept."""

import dataclasses
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.planning import hlo
from experiments.planning.activations import kept_bytes
from experiments.planning.collectives import closes, collectives
from experiments.planning.compile import needed
from experiments.planning.fit import last
from experiments.planning.traffic import hbm_bytes
from train.chips import CHIPS, GIB

V5E = CHIPS['v5e']


def module(*instructions: str, more: str = '') -> hlo.Module:
    """A program of these instructions, after other computations."""
    body = '\n'.join(f'  {each}' for each in instructions)
    return hlo.parse(f'HloModule m\n\n{more}\nENTRY %main (p: f32[1]) -> f32[1] {{\n{body}\n}}\n')


def test_a_loop_counts_as_often_as_it_runs():
    def inner(x, _):
        return jnp.sin(x @ x), None

    def outer(x, _):
        return jax.lax.scan(inner, x, None, length=7)[0], None

    def run(x):
        return jax.lax.scan(outer, x, None, length=3)[0]

    text = jax.jit(run).lower(jax.ShapeDtypeStruct((64, 64), jnp.float32)).compile().as_text()
    # Without what the CPU's compiler writes beside a loop, as the TPU's does not, the loop's condition tells.
    for each in (text, text.replace('known_trip_count', 'unknown')):
        read = hlo.parse(each)
        products = [times for _, instruction, times in read.runs() if 'dot_general' in instruction.source]
        assert sum(products) == 21


@pytest.mark.parametrize(
    ('text', 'bytes', 'padded', 'in_hbm'),
    [
        ('f32[3,5]{1,0:T(8,128)}', 60, 8 * 128 * 4, True),
        ('bf16[12,128,64]{2,1,0:T(8,128)(2,1)S(1)}', 12 * 128 * 64 * 2, 12 * 128 * 128 * 2, False),
        ('f32[12,64]{0,1:T(8,128)}', 12 * 64 * 4, 128 * 64 * 4, True),
        ('s32[7]{0:T(128)}', 28, 512, True),
        ('pred[]', 1, 1, True),
    ],
)  # fmt: skip
def test_an_array_takes_whole_tiles(text, bytes, padded, in_hbm):
    (array,) = hlo.arrays(text)
    assert (array.bytes, array.padded_bytes, array.in_hbm) == (bytes, padded, in_hbm)


def test_lines_of_a_kernels_attributes_belong_together():
    text = (
        'ENTRY %main (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n'
        '  %k = f32[8]{0} custom-call(%p), frontend_attributes={kernel_metadata={\n"note":"x"\n'
        '}}, metadata={op_name="jit(f)/kernel"}\n  ROOT %r = f32[8]{0} negate(%k)\n}\n'
    )
    read = hlo.parse(text)
    assert read.computations['main'].instructions['k'].source == 'jit(f)/kernel'
    assert read.computations['main'].root.name == 'r'


BIG, PART, CHIP = 'f32[64,128]{1,0:T(8,128)}', 'f32[8,128]{1,0:T(8,128)}', 'f32[64,128]{1,0:T(8,128)S(1)}'
BIG_BYTES, PART_BYTES = 64 * 128 * 4, 8 * 128 * 4


@pytest.mark.parametrize(
    ('instructions', 'expected'),
    [
        ([f'%a = {BIG} add(%p, %p)'], 3 * BIG_BYTES),
        ([f'%a = {CHIP} add(%p, %p)'], 2 * BIG_BYTES),
        ([f'%a = ({CHIP}, {BIG}, u32[]{{:S(2)}}) copy-start(%p)', f'%b = {CHIP} copy-done(%a)'], BIG_BYTES),
        ([f'%a = (({BIG}), f32[8,128]{{1,0:T(8,128)S(1)}}, s32[]{{:S(2)}}) slice-start(%p)'], PART_BYTES),
        ([f'%a = {BIG} fusion(%p, %i), kind=kLoop, calls=%cut'], PART_BYTES + BIG_BYTES),
        ([f'%a = {BIG} fusion(%p, %q), kind=kLoop, calls=%update'], 2 * PART_BYTES),
        ([f'%a = ({BIG}, {BIG}) fusion(%p, %p), kind=kCustom, calls=%on'], 2 * BIG_BYTES),
        ([f'%a = {BIG} bitcast(%p)', f'%b = ({BIG}, {BIG}) tuple(%a, %p)'], 0),
    ],
    ids=[
        'read twice, written',
        'written on chip',
        'copied on chip',
        'a slice of it',
        'cut out',
        'in place',
        'handed on',
        'nothing',
    ],
)
def test_bytes_moved(instructions, expected):
    more = (
        f'%cut (x: f32[1]) -> f32[1] {{\n  %x = {BIG} parameter(0)\n  %at = s32[]{{:T(128)}} parameter(1)\n'
        f'  %c = {PART} dynamic-slice(%x, %at, %at), dynamic_slice_sizes={{8,128}}\n'
        f'  ROOT %d = {BIG} broadcast(%c), dimensions={{0,1}}\n}}\n\n'
        f'%update (y: f32[1]) -> f32[1] {{\n  %y = {BIG} parameter(0)\n  %z = {PART} parameter(1)\n'
        f'  %zero = s32[] constant(0)\n  ROOT %u = {BIG} dynamic-update-slice(%y, %z, %zero, %zero)\n}}\n\n'
        f'%on (v: f32[1]) -> f32[1] {{\n  %v = {BIG} parameter(0)\n  %w = {BIG} parameter(1)\n'
        f'  %s = {BIG} sine(%w)\n  ROOT %t = ({BIG}, {BIG}) tuple(%v, %s)\n}}\n'
    )
    inputs = [f'%p = {BIG} parameter(0)', f'%q = {PART} parameter(1)', '%i = s32[]{:T(128)S(6)} parameter(2)']
    assert hbm_bytes(module(*inputs, *instructions, more=more)) == expected


def test_what_the_backward_pass_reads_is_kept():
    forward, backward = 'metadata={op_name="jit(f)/jvp(x)/sin"}', 'metadata={op_name="jit(f)/transpose(jvp(x))/mul"}'
    read = module(
        f'%p = {BIG} parameter(0)',
        f'%a = {BIG} sine(%p), {forward}',
        f'%b = {BIG} cosine(%a), {forward}',
        f'%c = {CHIP} cosine(%a), {forward}',
        f'%t = ({BIG}, {BIG}) tuple(%a, %b)',
        f'%g = {BIG} get-tuple-element(%t), index=1',
        f'%d = {BIG} multiply(%g, %p), {backward}',
        f'ROOT %e = {BIG} multiply(%c, %d), {backward}',
    )
    assert kept_bytes(read) == BIG_BYTES  # of b; a is read by the forward pass alone, c lies on the chip


def mesh_of(shape, slice_shape):
    """A mesh whose devices stand in the order of their places in a slice."""
    places = [SimpleNamespace(coords=(*place, 0)) for place in np.ndindex(*slice_shape)]
    devices = np.empty(len(places), object)
    devices[:] = places
    return SimpleNamespace(devices=devices.reshape(shape), axis_names=('arm', 'data', 'fsdp', 'tensor'))


def test_collectives_by_kind_axis_and_bytes():
    read = module(
        f'%p = {BIG} parameter(0)',
        f'%a = {BIG} all-reduce(%p), replica_groups=[4,4]<=[4,4]T(1,0), to_apply=%add',
        f'%b = {BIG} all-reduce(%p), replica_groups=[4,4]<=[4,4]T(1,0), to_apply=%add',
        f'%c = ({PART}, {BIG}) all-gather-start(%q), replica_groups=[4,4]<=[16], dimensions={{0}}',
        f'%d = {BIG} all-gather-done(%c)',
        f'%q = {PART} parameter(1)',
        f'%e = {BIG} all-reduce(%p), replica_groups=[16,1]<=[16], to_apply=%add',
    )
    reduce, gather = collectives(read, mesh_of((1, 4, 4, 1), (4, 4)), V5E)
    assert (reduce.kind, reduce.axes, reduce.count, reduce.bytes) == ('all-reduce', ('data',), 2, 2 * BIG_BYTES)
    # Over one dimension of 4 chips that does not close: twice three quarters of it over one link each way.
    assert reduce.seconds == pytest.approx(2 * BIG_BYTES * 1.5 / 45e9)
    assert (gather.kind, gather.axes, gather.count, gather.bytes) == ('all-gather', ('fsdp',), 1, BIG_BYTES)
    assert gather.seconds == pytest.approx(BIG_BYTES * 0.75 / 45e9)


def test_a_collective_beside_other_work_counts_once():
    """As libtpu writes it: in three fusions with one channel, in a loop's body that runs 5 times; and one by itself."""
    about = 'replica_groups=[4,4]<=[16], dimensions={0}'
    fusions = ''.join(
        f'%part.{n} (x: f32[1]) -> f32[1] {{\n  %x = {PART} parameter(0)\n'
        f'  ROOT %g = {BIG} all-gather(%x), channel_id={channel}, {about}\n}}\n\n'
        for n, channel in enumerate((7, 7, 7, 8))
    )
    body = (
        f'%body (b: f32[1]) -> f32[1] {{\n  %b = {PART} parameter(0)\n'
        + ''.join(f'  %f.{n} = {BIG} fusion(%b), kind=kCustom, calls=%part.{n}\n' for n in range(4))
        + f'  ROOT %r = {PART} negate(%b)\n}}\n'
    )
    read = module(
        f'%p = {PART} parameter(0)',
        f'%w = {PART} while(%p), condition=%none, body=%body, backend_config={{"known_trip_count":{{"n":"5"}}}}',
        f'%a = {BIG} all-gather(%w), channel_id=7, {about}',
        more=fusions + body,
    )
    (gather,) = collectives(read, mesh_of((1, 4, 4, 1), (4, 4)), V5E)
    assert (gather.count, gather.bytes) == (11, 11 * BIG_BYTES)


def test_a_torus_has_twice_the_links():
    open_ended, closed = (
        collectives(
            module(f'%p = {BIG} parameter(0)', f'%a = {BIG} all-reduce(%p), replica_groups={{}}'),
            mesh_of((1, shape[0] * shape[1], 1, 1), shape),
            V5E,
        )[0].seconds
        * (shape[0] * shape[1])
        / (shape[0] * shape[1] - 1)
        for shape in ((8, 16), (16, 16))
    )  # fmt: skip
    assert open_ended / closed == pytest.approx(4 / 3)
    assert closes(np.array([4, 4, 8]), 0, CHIPS['v4']) and not closes(np.array([2, 2, 1]), 0, CHIPS['v5p'])


def test_a_refusal_says_how_much_is_needed():
    message = (
        'RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (20.50G) exceeds '
        'available HBM (15.75G).'
    )
    assert needed(message) == int(20.5 * GIB)
    older = (
        'Ran out of memory in memory space hbm. Used 17.00G of 15.75G hbm. Total hbm usage >= 17.52G: reserved 530.00M'
    )
    assert needed(older) == int(17.52 * GIB)
    assert needed('RESOURCE_EXHAUSTED: something else') == 0


@pytest.mark.parametrize('limit', [0, 1, 5, 16, 100, 1000])
@pytest.mark.parametrize('start', [1, 7, 64])
def test_the_search_ends_just_below_what_does_not_fit(limit, start):
    tried = []

    def fits(units: int) -> bool:
        tried.append(units)
        return units <= limit

    found = last(fits, start)
    assert found <= limit < found + max(found // 16, 1) + 1 and len(tried) < 20


def test_every_chip_is_known_by_one_name():
    kinds = [chip.device_kind for chip in CHIPS.values()]
    assert len(set(kinds)) == len(kinds) == 4
    assert all(chip.name == name and min(dataclasses.astuple(chip)[2:]) > 0 for name, chip in CHIPS.items())
