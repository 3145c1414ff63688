"""SentencePiece: trained so that its result depends on the text alone, and read so that text holds no special id."""

import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import sentencepiece

from data.clean import one_line
from data.errors import UserError
from data.offsets import Located, located
from data.vocabulary import Vocabulary

SMALLEST = 300
"""Pieces below which hardly any are left beside the specials and the bytes (`DataConfig` refuses fewer)."""
_FIXED = 5 + 256  # [PAD] [UNK] [CLS] [SEP] [MASK], and one piece for each byte
_LINE_BYTES = 4096  # the trainer skips lines of more than 4,192 bytes without a word
_RESERVED = '\u2585'  # and lines with this letter, its own mark for unknown text
_COVERAGE = 0.9995


class SentencePieceTokenizer:
    """A SentencePiece model with Cloze's five specials as control symbols, which no text can produce."""

    FILE = 'tokenizer.model'

    def __init__(self, model: bytes, source: str):
        """Reads a serialized model; `source` names it in errors.

        Raises:
          UserError: it is not a model, or lacks a special.
        """
        self._model = model
        self.processor = sentencepiece.SentencePieceProcessor()
        """The library's own, for what is compared with it."""
        try:
            self.processor.LoadFromSerializedProto(model)
        except RuntimeError:
            raise UserError(f'{source}: not a SentencePiece model; prepare the store again') from None
        processor = self.processor
        ids = range(processor.get_piece_size())
        self._pieces = [processor.id_to_piece(i) for i in ids]
        special = [i for i in ids if processor.is_control(i) or processor.is_unknown(i) or processor.is_unused(i)]
        self.starts_word = np.array([piece.startswith('▁') for piece in self._pieces])
        self.starts_word[special] = True
        ids = {piece: i for i, piece in enumerate(self._pieces)}
        digest = hashlib.sha256(model).hexdigest()
        self.vocabulary = Vocabulary.of(ids, special, digest, source, self.starts_word)
        self._dropped = np.array(sorted(set(special) - {self.vocabulary.unk}))
        self.normalizer = 'identity'
        """SentencePiece's own rule, after NFC (`data.clean`): text is neither folded nor lower-cased."""

    def encode(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Each text's ids, int32, none of them special; white space counts as one space."""
        return self._encode([one_line(text) for text in texts])

    def encode_parts(self, lines: Sequence[Sequence[str]]) -> Iterator[tuple[np.ndarray, list[int]]]:
        """The same of lines in parts, joined as `one_line` gives them; and how many tokens begin in each part."""
        joined = [''.join(parts) for parts in lines]
        for parts, line, ids_T in zip(lines, joined, self._encode(joined), strict=True):
            yield ids_T, self._counts(parts, line, ids_T)

    def _counts(self, parts: Sequence[str], line: str, ids_T: np.ndarray) -> list[int]:
        if len(parts) < 2:
            return [len(ids_T)]
        *others, _ = parts
        words = self.starts_word[ids_T].nonzero()[0].tolist()
        spaces = [part.count(' ') for part in parts]
        if len(words) == sum(spaces) + 1 and all(part.endswith(' ') for part in others) and '▁' not in line:
            # Words are what stands between spaces, and tell where parts begin. To locate takes nine times as long.
            # A '▁' in the text itself begins a word for SentencePiece alone.
            begins = [words[number] for number in accumulate(spaces[:-1])]
        else:
            (located,) = self.locate([line])
            begins = np.searchsorted(located.spans_Tx2[:, 0], list(accumulate(map(len, others)))).tolist()
        return [end - begin for begin, end in pairwise([0, *begins, len(ids_T)])]

    def _encode(self, lines: Sequence[str]) -> list[np.ndarray]:
        """On one thread."""
        return self.processor.encode(lines, return_type='numpy', num_threads=1)

    def locate(self, texts: Sequence[str]) -> list[Located]:
        """As `encode`, and where in the text each token stands; bytes of one letter all stand where it does."""
        return [located(text, self._encode_line) for text in texts]

    def _encode_line(self, line: str) -> tuple[list[int], list[tuple[int, int]]]:
        found = self.processor.encode(line, return_type='offset_mapping')
        # Of a letter spelled in bytes the last alone has its place, the others an empty one before it.
        spans = [
            (begin, begin + 1) if self.processor.is_byte(i) else (begin, end)
            for i, (begin, end) in zip(found['ids'], found['offsets'], strict=True)
        ]
        return found['ids'], spans

    def decode(self, ids) -> str:
        """Text of the ids; specials other than unknown are left out."""
        ids = np.asarray(ids, np.int64)
        return self.processor.decode(ids[~np.isin(ids, self._dropped)].tolist())

    def pieces(self, ids) -> list[str]:
        """The pieces' names; '▁' begins a word, '<0x0A>' is a byte."""
        return [self._pieces[i] for i in np.asarray(ids).tolist()]

    @property
    def content(self) -> bytes:
        """What its file holds."""
        return self._model

    def save(self, folder: str | Path) -> None:
        (Path(folder) / self.FILE).write_bytes(self._model)


def train_sentencepiece(texts: Sequence[str], model_type: str, vocab_size: int) -> bytes:
    """A serialized model with `vocab_size` pieces, trained on texts of one line each.

    Byte-identical for the same texts: one thread (results differ with their number), no path read or written.

    Args:
      model_type: 'unigram' (Kudo 2018) or 'bpe' (Sennrich et al. 2016).

    Raises:
      UserError: the texts cannot fill so many pieces.
    """
    size = vocab_size
    while size >= SMALLEST:
        model, largest = _train(texts, model_type, size)
        if model and size == vocab_size:
            return model
        if model:  # tried, not believed: a training with this size has just worked
            raise UserError(f'--vocab_size {vocab_size} is more than the corpus can fill: the largest is {size}')
        size = min(largest, size - 1)
    raise UserError(
        f'the corpus is too small for a {model_type} tokenizer: it fills {size} of at least {SMALLEST} pieces; '
        'add text, or give --tokenizer hf:PATH'
    )


def _train(texts: Sequence[str], model_type: str, vocab_size: int) -> tuple[bytes | None, int]:
    """The model and its size; or None and the size that the trainer says is the largest."""
    lines = _training_lines(texts, vocab_size)
    if not lines:
        return None, 0
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            model_type=model_type,
            vocab_size=vocab_size,
            character_coverage=1.0,
            normalization_rule_name='identity',
            byte_fallback=True,
            num_threads=1,
            pad_id=0,
            unk_id=1,
            bos_id=2,
            eos_id=3,
            pad_piece='[PAD]',
            unk_piece='[UNK]',
            bos_piece='[CLS]',
            eos_piece='[SEP]',
            control_symbols=['[MASK]'],
            minloglevel=2,
        )
    except RuntimeError as error:
        largest = re.search(r'too high \(\d+\).* value <= (\d+)', str(error))
        if largest is None:
            raise UserError(f'--tokenizer {model_type}: SentencePiece failed: {error}') from None
        return None, int(largest[1])
    return model.getvalue(), vocab_size


def _training_lines(texts: Sequence[str], vocab_size: int) -> list[str]:
    """The texts in lines that the trainer reads whole, with a space for each letter that is to be spelled in bytes."""
    rare = re.compile(f'[{re.escape("".join(_rare_letters(texts, vocab_size)))}]')
    return [line for text in texts for line in _short_lines(rare.sub(' ', text))]


def _rare_letters(texts: Sequence[str], vocab_size: int) -> list[str]:
    """Letters that get no piece of their own: the rarest, 0.05% of the text, and more where letters are many.

    At most half of the pieces are single letters. The trainer's own option (character_coverage) goes no lower than 98%,
    and it refuses a text with more kinds of letters than pieces.
    """
    counts = Counter()
    for text in texts:
        counts.update(text)
    ranked = [letter for letter, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    total, covered, kept = sum(counts.values()), 0, 0
    while kept < (vocab_size - _FIXED) // 2 and kept < len(ranked) and covered < _COVERAGE * total:
        covered += counts[ranked[kept]]
        kept += 1
    return [_RESERVED, *(letter for letter in ranked[kept:] if letter != ' ')]


def _short_lines(text: str) -> Iterator[str]:
    """The text cut at spaces, and inside words longer than a line; nothing if it is blank."""
    line, size = [], 0
    for word in _short_words(text):
        width = len(word.encode()) + 1
        if size + width > _LINE_BYTES:
            yield ' '.join(line)
            line, size = [], 0
        line.append(word)
        size += width
    if line:
        yield ' '.join(line)


def _short_words(text: str) -> Iterator[str]:
    letters = _LINE_BYTES // 4 - 1  # a letter takes 4 bytes at most, and a space may follow
    for word in text.split():
        for start in range(0, len(word), letters):
            yield word[start : start + letters]
