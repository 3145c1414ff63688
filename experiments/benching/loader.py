"""How many tokens a second the loader hands over."""

import time
from collections import deque

from data.loader import batches
from data.store import TokenStore

LENGTH, BATCH_SIZE = 128, 256


def measure(store: TokenStore, tokens: int, length: int = LENGTH, batch_size: int = BATCH_SIZE) -> float:
    """Tokens a second over about so many tokens, from the call to the last batch. The corpus comes round again."""
    steps = max(tokens // (length * batch_size), 1)
    began = time.perf_counter()
    rows = batches(
        store.train,
        store.tokenizer.vocabulary,
        seeds=(0,),
        length=length,
        batch_size=batch_size,
        start=0,
        steps=steps,
    )
    deque(rows, maxlen=0)
    return steps * length * batch_size / (time.perf_counter() - began)
