"""Carries out the parts of the bench; a line for each figure as it comes."""

import statistics
from collections.abc import Iterator
from importlib.metadata import version
from itertools import product

from data.config import DataConfig
from data.errors import UserError
from data.prepare import store_for
from data.store import TokenStore
from experiments.bench import BenchFlags
from experiments.benching import ablation, finetune, loader, preparation, startup, step, torch_peer
from experiments.benching.clock import Sides
from experiments.devices import cores


def lines(flags: BenchFlags) -> Iterator[str]:
    """The parts that are asked for.

    Raises:
      UserError: vocab_size is below that of the tokenizer.
    """
    store = store_for(DataConfig(), log=lambda line: None)
    yield f'{cores()} cores, jax {version("jax")}; each figure is the median of {flags.pairs} turns by both sides'
    parts = {
        'step': lambda: _steps(flags, store),
        'ablation': lambda: _ablation(flags, store),
        'loader': lambda: _loader(flags, store),
        'preparation': lambda: _preparation(flags, store),
        'startup': lambda: _startup(store),
        'finetune': lambda: _finetune(flags, store),
    }
    for name, part in parts.items():
        if name in flags.only:
            yield ''
            yield from part()


def _steps(flags: BenchFlags, store: TokenStore) -> Iterator[str]:
    vocab_size, known = flags.vocab_size or store.tokenizer.vocabulary.size, store.tokenizer.vocabulary.size
    if vocab_size < known:
        raise UserError(f'--vocab_size {vocab_size}: the tokenizer has {known}; use that or more')
    absent = torch_peer.missing()
    if absent:
        yield f'{" and ".join(absent)} not installed here (make venv-peers installs it): our figures alone'
    else:
        yield f'torch {version("torch")}, transformers {version("transformers")}'
    yield f'Train step: one replica, {step.TOKENS:,} tokens, vocabulary {vocab_size:,}, dropout 0.1, AdamW, float32'
    yield from _row('size', 'length', 'rate', 'tokens/s', *([] if absent else ['PyTorch', 'ratio', 'of single pairs']))
    for size, length, rate in product(flags.sizes, flags.lengths, flags.rates):
        case = step.Case(size, length, rate, vocab_size)
        sides = step.measure(case, store, flags.pairs, 0 if absent else cores(), flags.seconds)
        ours = _speed(case.tokens, sides.ours)
        theirs = [] if absent else [_speed(case.tokens, sides.theirs), f'{sides.ratio:.2f}', _spread(sides)]
        yield from _row(size, length, f'{100 * rate:g}%', ours, *theirs)


def _ablation(flags: BenchFlags, store: TokenStore) -> Iterator[str]:
    yield 'Ablation: all replicas of configs/masking_rate.py in one program, against one after the other'
    yield from _row('length', 'replicas', 'tokens/s', 'one by one', 'ratio', 'of single pairs')
    for found in ablation.measure(store, flags.pairs, flags.seconds):
        ours, theirs = (_speed(found.tokens, side) for side in (found.sides.ours, found.sides.theirs))
        yield from _row(found.length, found.replicas, ours, theirs, f'{found.sides.ratio:.2f}', _spread(found.sides))


def _loader(flags: BenchFlags, store: TokenStore) -> Iterator[str]:
    speeds = [loader.measure(store) for _ in range(flags.pairs)]
    yield (
        f'Loader: {statistics.median(speeds):,.0f} tokens/s at length {loader.LENGTH}, batch {loader.BATCH_SIZE} '
        f'({min(speeds):,.0f} to {max(speeds):,.0f})'
    )


def _preparation(flags: BenchFlags, store: TokenStore) -> Iterator[str]:
    found = preparation.measure(store, flags.pairs)
    ours, theirs = (_speed(found.tokens, side) for side in (found.sides.ours, found.sides.theirs))
    yield (
        f'Preparation: {ours} tokens a CPU second, from text to store with a given tokenizer; a plain SentencePiece '
        f'loop {theirs}: ratio {found.sides.ratio:.2f} ({_spread(found.sides)})'
    )


def _startup(store: TokenStore) -> Iterator[str]:
    cold, warm = startup.measure(store.folder)
    yield (
        f'Start: {warm:.1f} s from the start of pretrain at smoke scale to its first step '
        f'({cold:.1f} s with an empty compilation cache)'
    )


def _finetune(flags: BenchFlags, store: TokenStore) -> Iterator[str]:
    rows = finetune.sst2_rows(flags.data_dir, flags.tokenizer, store)
    absent = torch_peer.missing()
    yield (
        f'Fine-tuning: SST-2, batch {finetune.BATCH_SIZE}, {finetune.MAX_LENGTH} tokens at most, vocabulary '
        f'{rows.vocabulary.size:,}; rows in buckets against padding to the longest of a batch'
    )
    yield from _row('size', 'examples/s', *([] if absent else ['PyTorch', 'ratio', 'of single pairs']))
    for size in flags.sizes:
        sides = finetune.measure(size, rows, flags.pairs, 0 if absent else cores(), flags.seconds)
        ours = _speed(len(rows), sides.ours)
        theirs = [] if absent else [_speed(len(rows), sides.theirs), f'{sides.ratio:.2f}', _spread(sides)]
        yield from _row(size, ours, *theirs)


def _row(*cells) -> Iterator[str]:
    yield '  '.join(f'{cell:>{15 if i > 5 else 10}}' for i, cell in enumerate(cells))


def _speed(tokens: int, seconds: tuple[float, ...]) -> str:
    return f'{tokens / statistics.median(seconds):,.0f}'


def _spread(sides: Sides) -> str:
    low, high = sides.spread
    return f'{low:.2f} to {high:.2f}'
