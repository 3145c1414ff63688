"""A SentencePiece tokenizer as Hugging Face's tokenizer.json: the same ids for any text that spells no special piece.

A special's name in text becomes its id there, as in every tokenizer of `transformers`; ours reads it as letters.
"""

import json
from pathlib import Path

import tokenizers
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from data.sentencepiece_tokenizer import SentencePieceTokenizer

_SPACE = '▁'
# `data.clean.one_line`, and what SentencePiece does to a line: trailing spaces off, one before the first word.
_STEPS = (
    ('[\t\n\x0b\x0c\r\x1c-\x1f\x85\u2028\u2029]', ' '),
    ('[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ufeff]', ''),
    None,  # NFC
    ('[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]', ' '),
    (' +', ' '),
    ('^ | $', ''),
    (' ', _SPACE),
    (f'{_SPACE}+$', ''),
    ('^(?=.)', _SPACE),
)


def export(tokenizer: SentencePieceTokenizer, folder: str | Path) -> None:
    """Writes tokenizer.json, and tokenizer_config.json, which tells `transformers` what it is, into a folder."""
    made, names = exported(tokenizer), _specials(tokenizer)
    made.save(str(Path(folder) / 'tokenizer.json'))
    stated = {'tokenizer_class': 'PreTrainedTokenizerFast', **{f'{part}_token': name for part, name in names.items()}}
    (Path(folder) / 'tokenizer_config.json').write_text(json.dumps(stated, indent=1) + '\n')


def exported(tokenizer: SentencePieceTokenizer) -> tokenizers.Tokenizer:
    """The library's form of a tokenizer; it puts [CLS] and [SEP] around a text unless told not to."""
    stored, names = ModelProto.FromString(tokenizer.content), _specials(tokenizer)
    if stored.trainer_spec.model_type == stored.trainer_spec.UNIGRAM:
        scored = [(piece.piece, piece.score) for piece in stored.pieces]
        model = models.Unigram(scored, unk_id=tokenizer.vocabulary.unk, byte_fallback=True)
    else:
        ids = {piece.piece: i for i, piece in enumerate(stored.pieces)}
        ordinary = [piece.piece for piece in stored.pieces if piece.type == piece.NORMAL]
        # Every pair of pieces that makes a piece, those of earlier pieces first: a piece's place is its rank.
        pairs = [(piece[:cut], piece[cut:]) for piece in ordinary for cut in range(1, len(piece))]
        merges = [pair for pair in pairs if pair[0] in ids and pair[1] in ids]
        model = models.BPE(ids, merges, unk_token=names['unk'], fuse_unk=True, byte_fallback=True)
    made = tokenizers.Tokenizer(model)
    made.normalizer = normalizers.Sequence(
        [normalizers.Replace(Regex(step[0]), step[1]) if step else normalizers.NFC() for step in _STEPS]
    )
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(_SPACE, prepend_scheme='never', split=True),
            # Text that spells the name of a byte's piece is not that byte.
            pre_tokenizers.Split(Regex('<(?=0x[0-9A-F]{2}>)'), 'merged_with_previous'),
        ]
    )
    made.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Fuse(), decoders.Replace(_SPACE, ' '), decoders.Strip(' ', 1, 0)]
    )
    made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names.values()])
    around = [(names[part], made.token_to_id(names[part])) for part in ('cls', 'sep')]
    first, last = names['cls'], names['sep']
    made.post_processor = processors.TemplateProcessing(
        single=f'{first} $A {last}', pair=f'{first} $A {last} $B:1 {last}:1', special_tokens=around
    )
    return made


def _specials(tokenizer: SentencePieceTokenizer) -> dict[str, str]:
    vocabulary = tokenizer.vocabulary
    ids = {part: getattr(vocabulary, part) for part in ('pad', 'unk', 'cls', 'sep', 'mask')}
    return dict(zip(ids, tokenizer.pieces(list(ids.values())), strict=True))
