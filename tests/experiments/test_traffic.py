"""Reading from a compiled program's text what moves through HBM."""

import pytest

from experiments.benching.traffic import hbm_bytes

FUSION = 'fusion(%a), kind=kLoop, calls=%fused_computation, metadata={op_name="jit(f)/mul (x)"}'


def program(*instructions: str) -> str:
    """A program of one argument, bf16 [8, 128] in whole tiles, 2,048 bytes."""
    lines = ['  %a = bf16[8,128]{1,0:T(8,128)(2,1)} parameter(0)', *(f'  {each}' for each in instructions)]
    return '\n'.join(
        [
            'HloModule jit_f, is_scheduled=true',
            '',
            '%fused_computation (p: bf16[8,128]) -> bf16[8,128] {',
            '  %p = bf16[8,128]{1,0:T(8,128)(2,1)} parameter(0)',
            '  ROOT %m = bf16[8,128]{1,0:T(8,128)(2,1)} multiply(%p, %p)',
            '}',
            '',
            'ENTRY %main (a: bf16[8,128]) -> bf16[8,128] {',
            *lines,
            '}',
        ]
    )


@pytest.mark.parametrize(
    ('instructions', 'expected'),
    [
        # Read and written; what is within a fusion never leaves the chip.
        ([f'%b = bf16[8,128]{{1,0:T(8,128)(2,1)}} {FUSION}'], 2 * 2048),
        # Written to on-chip memory.
        ([f'%b = bf16[8,128]{{1,0:T(8,128)(2,1)S(1)}} {FUSION}'], 2048),
        # 12 rows of 64 numbers fill tiles of 8 x 128.
        ([f'%b = f32[12,64]{{1,0:T(8,128)}} {FUSION}'], 2048 + 16 * 128 * 4),
        ([f'%b = f32[12,64]{{0,1:T(8,128)}} {FUSION}'], 2048 + 64 * 128 * 4),
        # Two results, one of them on the chip.
        ([f'%b = (f32[8,128]{{1,0:T(8,128)}}, f32[8,128]{{1,0:T(8,128)S(1)}}) {FUSION}'], 2048 + 4096),
        # An asynchronous copy moves its array once, a slice its part.
        (
            [
                '%c = (bf16[8,128]{1,0:T(8,128)(2,1)S(1)}, bf16[8,128]{1,0:T(8,128)(2,1)}, u32[]) copy-start(%a)',
                '%d = bf16[8,128]{1,0:T(8,128)(2,1)S(1)} copy-done(%c)',
            ],
            2048,
        ),
        (['%c = ((f32[64,128]{1,0:T(8,128)}), f32[8,128]{1,0:T(8,128)S(1)}, s32[]{:S(2)}) slice-start(%a)'], 4096),
        (['%b = bf16[4,256]{1,0:T(4,128)(2,1)} bitcast(%a)', '%t = (bf16[4,256]{1,0}) tuple(%b)'], 0),
    ],
)
def test_what_lies_in_hbm_counts_in_whole_tiles(instructions, expected):
    assert hbm_bytes(program(*instructions)) == expected


def test_a_loops_body_counts_once_and_no_other_computation():
    loop = program('%w = bf16[8,128]{1,0} while(%a), condition=%cond, body=%fused_computation')
    # The body multiplies its argument: two operands read, one result written.
    assert hbm_bytes(loop) == 3 * 2048
    assert hbm_bytes(program()) == 0
