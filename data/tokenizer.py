"""The tokenizer of a store, whichever kind it is."""

from pathlib import Path

from data.errors import UserError
from data.huggingface_tokenizer import HuggingFaceTokenizer
from data.sentencepiece_tokenizer import SentencePieceTokenizer

Tokenizer = SentencePieceTokenizer | HuggingFaceTokenizer
"""Both have `vocabulary`, `starts_word`, `normalizer`, `encode`, `encode_parts`, `locate`, `decode`, `pieces`,
`content` and `save`."""
_KINDS = (SentencePieceTokenizer, HuggingFaceTokenizer)


def load_tokenizer(folder: str | Path) -> Tokenizer:
    """The tokenizer that `save` wrote into a folder.

    Raises:
      UserError: there is none, or it cannot be read.
    """
    for kind in _KINDS:
        path = Path(folder) / kind.FILE
        if path.is_file():
            return kind(path.read_bytes(), str(path))
    raise UserError(
        f'{folder}: has no tokenizer ({SentencePieceTokenizer.FILE} or {HuggingFaceTokenizer.FILE}); prepare it again'
    )


def tokenizer_of(name: str, content: bytes, source: str) -> Tokenizer:
    """A tokenizer from what its file holds.

    Args:
      name: of the file, which tells the kind.
      source: what errors call it.
    """
    return next(kind for kind in _KINDS if name == kind.FILE)(content, source)
