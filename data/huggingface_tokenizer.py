"""A Hugging Face tokenizer.json (WordPiece or byte-level BPE), read so that text holds no special id."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from data.clean import one_line
from data.errors import UserError
from data.offsets import Located, located
from data.vocabulary import SPECIALS, Vocabulary

# Put before the names of special pieces inside the tokenizer: no cleaned text holds it, so none can spell them.
_HIDDEN = '\x00'


class HuggingFaceTokenizer:
    """A tokenizer.json whose specials are found by name: BERT's ([MASK]) or RoBERTa's (<mask>)."""

    FILE = 'tokenizer.json'

    def __init__(self, content: bytes, source: str):
        """Reads the bytes of a tokenizer.json; `source` names it in errors.

        Raises:
          UserError: it cannot be read, is of another kind, or lacks a special.
        """
        self._content = content
        try:
            tree = json.loads(content)
            self._word_start, self._space_before = _word_marks(tree, source)
            special = _special_names(tree)
            self._tokenizer = tokenizers.Tokenizer.from_str(json.dumps(_hidden(tree, special)))
        except UserError:
            raise
        except Exception as error:  # the library raises bare Exception; a malformed tree, KeyError and the like
            raise UserError(f'{source}: not a tokenizer.json that can be read ({str(error)[:200]})') from None
        ids = {piece.removeprefix(_HIDDEN): i for piece, i in self._tokenizer.get_vocab(with_added_tokens=True).items()}
        special_ids = {ids[name] for name in special}
        self._pieces = [''] * (1 + max(ids.values()))
        for piece, i in ids.items():
            self._pieces[i] = piece
        self.starts_word = np.array([self._word_start(piece) for piece in self._pieces])
        self.starts_word[list(special_ids)] = True
        digest = hashlib.sha256(content).hexdigest()
        self.vocabulary = Vocabulary.of(ids, special_ids, digest, source, self.starts_word)
        self._dropped = np.array(sorted(special_ids - {self.vocabulary.unk}))
        self.normalizer = json.dumps(tree.get('normalizer'), sort_keys=True)
        """The file's own, as JSON; it follows NFC (`data.clean`)."""

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Each text's ids, int32, none of them special but unknown; white space counts as one space."""
        return [np.array(found.ids, np.int32) for found in self._encode([one_line(text) for text in texts])]

    def encode_parts(self, lines: Sequence[Sequence[str]]) -> Iterator[tuple[np.ndarray, list[int]]]:
        """The same of lines in parts, joined as `one_line` gives them; and how many tokens begin in each part."""
        for parts, found in zip(lines, self._encode([''.join(parts) for parts in lines]), strict=True):
            yield np.array(found.ids, np.int32), self._counts(parts, found)

    def _counts(self, parts: Sequence[str], found: tokenizers.Encoding) -> list[int]:
        begins, end = [], len(''.join(parts)) + self._space_before
        for part, place in zip(parts[:-1], accumulate(map(len, parts[:-1])), strict=True):
            place += self._space_before - part.endswith(' ')  # a space belongs to the token that it begins
            # No token has a letter that the normalizer drops.
            tokens = (found.char_to_token(letter) for letter in range(place, end))
            token = next((token for token in tokens if token is not None), len(found))
            begins.append(token + (token < len(found) and found.token_to_chars(token)[0] < place))
        return [end - begin for begin, end in pairwise([0, *begins, len(found)])]

    def _encode(self, lines: Sequence[str]) -> list[tokenizers.Encoding]:
        if self._space_before:
            lines = [f' {line}' if line else '' for line in lines]
        return self._tokenizer.encode_batch(lines, add_special_tokens=False)

    def locate(self, texts: Sequence[str]) -> list[Located]:
        """As `encode`, and where in the text each token stands; bytes of one letter all stand where it does."""
        return [located(text, self._encode_line) for text in texts]

    def _encode_line(self, line: str) -> tuple[list[int], list[tuple[int, int]]]:
        space = int(bool(self._space_before and line))
        (found,) = self._encode([line])
        return found.ids, [(max(begin - space, 0), max(end - space, 0)) for begin, end in found.offsets]

    def decode(self, ids) -> str:
        """Text of the ids; specials other than unknown are left out."""
        ids = np.asarray(ids, np.int64)
        text = self._tokenizer.decode(ids[~np.isin(ids, self._dropped)].tolist(), skip_special_tokens=False)
        return text.replace(_HIDDEN, '').strip()

    def pieces(self, ids) -> list[str]:
        """The pieces' names as the file has them: '##s' goes on with a word, 'Ġthe' begins one."""
        return [self._pieces[i] for i in np.asarray(ids).tolist()]

    @property
    def content(self) -> bytes:
        """What its file holds."""
        return self._content

    def save(self, folder: str | Path) -> None:
        (Path(folder) / self.FILE).write_bytes(self._content)


def _word_marks(tree: Any, source: str):
    """(piece -> does it start a word, does a text need a space before it to start one)."""
    model, before = tree['model'], list(_parts(tree.get('pre_tokenizer')))
    byte_level = next((part for part in before if part['type'] == 'ByteLevel'), None)
    if model.get('type') == 'WordPiece':
        prefix = model.get('continuing_subword_prefix', '##')
        return (lambda piece: not piece.startswith(prefix)), False
    if byte_level:
        return (lambda piece: piece.startswith('Ġ')), not byte_level.get('add_prefix_space', True)
    raise UserError(f'{source}: neither WordPiece nor byte-level BPE, so that words cannot be told apart')


def _parts(node: Any) -> Iterator[dict]:
    if node and node.get('type') == 'Sequence':
        for part in node['pretokenizers']:
            yield from _parts(part)
    elif node:
        yield node


def _special_names(tree: Any) -> set[str]:
    """Names of the special pieces: those the file marks so, and those of the five that it has."""
    added = tree.get('added_tokens') or []
    five = {name for names in SPECIALS.values() for name in names}
    names = {token['content'] for token in added} | set(tree['model']['vocab'])
    return {token['content'] for token in added if token['special']} | (five & names)


def _hidden(tree: Any, special: set[str]) -> Any:
    """The tree with special pieces under names that no text can spell, and nothing that adds or cuts tokens."""
    hide = {name: _HIDDEN + name for name in special}
    model = dict(tree['model'])
    model['vocab'] = {hide.get(piece, piece): i for piece, i in model['vocab'].items()}
    if model.get('unk_token'):
        model['unk_token'] = hide.get(model['unk_token'], model['unk_token'])
    added = [
        token | {'content': hide.get(token['content'], token['content'])} for token in tree.get('added_tokens') or []
    ]
    # Files on the Hub often truncate to 128 or 512 tokens, which would cut documents short.
    nothing = {'truncation': None, 'padding': None, 'post_processor': None}
    return tree | nothing | {'model': model, 'added_tokens': added}
