"""Which ids mean what."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from data.errors import UserError

SPECIALS = {
    'pad': ('[PAD]', '<pad>'),
    'unk': ('[UNK]', '<unk>'),
    'cls': ('[CLS]', '<s>'),
    'sep': ('[SEP]', '</s>'),
    'mask': ('[MASK]', '<mask>'),
}
"""Role -> the names a tokenizer may give it: BERT's, then RoBERTa's. Ids are found by name, never assumed."""


@dataclass(frozen=True)
class Vocabulary:
    """The ids of a tokenizer."""

    size: int
    """Ids in use, V before padding: the largest id, plus one."""
    pad: int
    unk: int
    cls: int
    sep: int
    mask: int
    ordinary: np.ndarray = field(compare=False)
    """int32, rising: the ids that text is made of and that may be drawn as random replacements."""
    fingerprint: str
    """sha256 of the tokenizer's content."""
    starts_word: np.ndarray = field(compare=False)
    """bool [size]: which ids begin a word; special ids do."""

    @classmethod
    def of(
        cls, ids: Mapping[str, int], special: Iterable[int], fingerprint: str, source: str, starts_word: np.ndarray
    ) -> 'Vocabulary':
        """The vocabulary of pieces `ids`, of which those in `special` are not ordinary, nor are the five by name.

        Raises:
          UserError: one of the five specials is missing, or two share an id. `source` names the file.
        """
        found = {}
        for role, names in SPECIALS.items():
            held = [ids[name] for name in names if name in ids]
            if not held:
                raise UserError(f'{source}: has no {names[0]} or {names[1]} piece, which masked language models need')
            found[role] = held[0]
        if len(set(found.values())) < len(found):
            raise UserError(f'{source}: two of {", ".join(found)} share an id: {found}')
        ordinary = sorted(set(ids.values()) - set(special) - set(found.values()))
        if not ordinary:
            raise UserError(f'{source}: has special pieces alone')
        return cls(
            size=max(ids.values()) + 1,
            ordinary=np.array(ordinary, np.int32),
            fingerprint=fingerprint,
            starts_word=starts_word,
            **found,
        )
