"""Tokens a second of the loader alone."""

import time

from data.loader import batches
from data.store import TokenStore

LENGTH, BATCH_SIZE, STEPS = 128, 256, 2000


def measure(store: TokenStore) -> float:
    """Tokens a second over STEPS batches of one seed, prefetched as in training."""
    rows = batches(
        store.train,
        store.tokenizer.vocabulary,
        seeds=(0,),
        length=LENGTH,
        batch_size=BATCH_SIZE,
        start=0,
        steps=STEPS,
    )
    began = time.perf_counter()
    tokens = sum(batch.tokens_SxBxL.size for batch in rows)
    return tokens / (time.perf_counter() - began)
