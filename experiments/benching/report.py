"""Carries out the parts of the bench and prints each figure as it comes."""

import statistics
from itertools import product

from data.config import DataConfig
from data.errors import UserError
from data.prepare import store_for
from experiments.benching import ablation, loader, startup, step, torch_peer
from model.config import SIZES

VOCABULARY = 8192
"""Pieces of the tokenizer in the comparison with PyTorch."""


def print_all(flags, cores: int) -> None:
    """Prints the parts that are asked for.

    Raises:
      UserError: an unknown size.
    """
    if unknown := [size for size in flags.sizes if size not in SIZES]:
        raise UserError(f'--sizes {unknown[0]}: use {", ".join(SIZES)}')
    if 'step' in flags.only:
        _print_steps(flags, cores)
    if 'ablation' in flags.only:
        store = store_for(DataConfig(), log=lambda line: None)
        print('\nAll replicas of configs/masking_rate.py in one program, against one after the other')
        for found in ablation.measure(store, flags.pairs, mesh=(1, 1)):
            tokens = found.tokens / statistics.median(found.sides.ours)
            print(
                f'length {found.length}: {found.replicas} replicas, {tokens:,.0f} tokens/s, '
                f'{_ratio(found.sides)} times as fast'
            )
    if 'loader' in flags.only:
        store = store_for(DataConfig(), log=lambda line: None)
        print(f'\nLoader, length {loader.LENGTH}, batch {loader.BATCH_SIZE}: {loader.measure(store):,.0f} tokens/s')
    if 'startup' in flags.only:
        cold, warm = startup.measure()
        print(f'\nProcess start to first step, smoke scale: {warm:.1f} s (compilation cache empty: {cold:.1f} s)')


def _print_steps(flags, threads: int) -> None:
    store = store_for(DataConfig(vocab_size=VOCABULARY), log=lambda line: None)
    missing = torch_peer.missing()
    if missing:
        print(f'{" and ".join(missing)} not installed (make venv-peers): our figures alone')
    print(f'Train step, {step.TOKENS} tokens, vocabulary {VOCABULARY}, {threads} threads, dropout 0.1')
    print('| size | length | rate | our tokens/s | PyTorch tokens/s | ratio (smallest to largest pair) |')
    print('| --- | ---: | ---: | ---: | ---: | ---: |')
    for size, length, rate in product(flags.sizes, flags.lengths, flags.rates):
        sides = step.measure(step.Case(size, length, rate), store, flags.pairs, not missing, threads)
        ours = step.TOKENS / statistics.median(sides.ours)
        theirs = f'{step.TOKENS / statistics.median(sides.theirs):,.0f} | {_ratio(sides)}' if sides.theirs else ' | '
        print(f'| {size} | {length} | {rate:g} | {ours:,.0f} | {theirs} |', flush=True)


def _ratio(sides) -> str:
    low, high = sides.spread
    return f'{sides.ratio:.2f} ({low:.2f} to {high:.2f})'
