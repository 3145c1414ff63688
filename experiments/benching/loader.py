"""How many tokens a second the loader hands over."""

import time
from collections import deque

from data.loader import batches
from data.store import TokenStore

LENGTH, BATCH_SIZE = 128, 256
STEPS = 4_000
"""131 million tokens: the embedded corpus 35 times over."""


def measure(store: TokenStore, steps: int = STEPS) -> float:
    """Tokens a second for one seed, from the call to the last batch, prefetched as in training."""
    began = time.perf_counter()
    rows = batches(
        store.train,
        store.tokenizer.vocabulary,
        seeds=(0,),
        length=LENGTH,
        batch_size=BATCH_SIZE,
        start=0,
        steps=steps,
    )
    deque(rows, maxlen=0)
    return steps * LENGTH * BATCH_SIZE / (time.perf_counter() - began)
