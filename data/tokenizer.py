"""The tokenizer of a store, whichever kind it is."""

from pathlib import Path

from data.errors import UserError
from data.huggingface_tokenizer import HuggingFaceTokenizer
from data.sentencepiece_tokenizer import SentencePieceTokenizer

Tokenizer = SentencePieceTokenizer | HuggingFaceTokenizer
"""Both have `vocabulary`, `starts_word`, `normalizer`, `encode`, `locate`, `decode`, `pieces` and `save`."""


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """The tokenizer that `save` wrote into a folder.

    Raises:
      UserError: there is none, or it cannot be read.
    """
    for kind in (SentencePieceTokenizer, HuggingFaceTokenizer):
        path = Path(folder) / kind.FILE
        if path.is_file():
            return kind(path.read_bytes(), str(path))
    raise UserError(
        f'{folder}: has no tokenizer ({SentencePieceTokenizer.FILE} or {HuggingFaceTokenizer.FILE}); prepare it again'
    )
