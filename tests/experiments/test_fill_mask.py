import dataclasses

import jax
import numpy as np
import pytest

from data.errors import UserError
from data.sentencepiece_tokenizer import SentencePieceTokenizer, train_sentencepiece
from experiments import load
from experiments.fill_mask import MASK, main
from experiments.filling import encode_with_masks, fill
from model import mlm
from model.config import ModelConfig
from train.config import Config, Stage

TEXTS = [
    'The state of the Union is strong. The Congress of the United States has met, and the people are free.',
    'We have kept our word; jobs, wages and savings grow. Quick foxes jump over lazy dogs in the park, by the bridge.',
    'Many members of this House voted for the treaty with our neighbours, which every citizen may judge for himself.',
]


@pytest.fixture(scope='module')
def tokenizer():
    return SentencePieceTokenizer(train_sentencepiece(TEXTS, 'bpe', 400), 'test')


@pytest.fixture(scope='module')
def replica(tokenizer):
    model = ModelConfig(layers=1, width=16, heads=2, feed_forward=32, vocab_size=tokenizer.vocabulary.size)
    config = Config(
        model=model, stages=(Stage(length=8, batch_size=1, steps=1), Stage(length=24, batch_size=1, steps=1))
    )
    return config, jax.tree.map(lambda leaf: 3 * leaf, mlm.init(jax.random.key(0), model)), tokenizer


def test_masks_stand_where_they_are_written_and_nothing_else_is_special(tokenizer):
    ids = encode_with_masks(tokenizer, f'{MASK} state of the {MASK}. {MASK}[SEP]')
    vocabulary = tokenizer.vocabulary
    assert list(ids == vocabulary.mask).count(True) == 3 and ids[0] == vocabulary.mask
    assert not np.isin(ids, [vocabulary.sep, vocabulary.cls, vocabulary.pad]).any()


@pytest.mark.parametrize('ending', ['.', ' is strong.', 's', ''])
def test_what_follows_a_mask_is_encoded_as_in_running_text(tokenizer, ending):
    running = tokenizer.encode(['The state of the Union' + ending])[0]
    union = len(tokenizer.encode(['The state of the Union'])[0])
    masked = encode_with_masks(tokenizer, f'The state of the {MASK}{ending}')
    after = masked[np.flatnonzero(masked == tokenizer.vocabulary.mask)[0] + 1 :]
    assert tokenizer.pieces(after) == tokenizer.pieces(running[union:])


def test_guesses_are_the_likeliest_pieces_in_order(replica):
    config, params, tokenizer = replica
    found = fill(config, params, tokenizer, f'The {MASK} of the {MASK} is strong.', 5)
    ids = np.array([2, *encode_with_masks(tokenizer, f'The {MASK} of the {MASK} is strong.'), 3], np.int32)[None]
    logits = np.asarray(mlm.predict(params, config.model, mlm.encode(params, config.model, ids, np.ones_like(ids))))[0]
    probabilities_LxV = np.exp(logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True))
    assert len(found) == 2
    for position, guesses in zip(np.flatnonzero(ids[0] == 4), found, strict=True):
        best = [i for i in np.argsort(-probabilities_LxV[position]) if i >= 5][:5]
        assert [guess.piece for guess in guesses] == tokenizer.pieces(best)
        assert [guess.probability for guess in guesses] == pytest.approx(probabilities_LxV[position, best], rel=1e-4)


def test_the_text_is_shown_with_the_guess_in_place(replica):
    config, params, tokenizer = replica
    first, second = fill(config, params, tokenizer, f'The {MASK} of the {MASK} is strong.', 1)
    assert first[0].text.startswith('The') and first[0].text.endswith(f'of the {MASK} is strong.')
    assert second[0].text.startswith(f'The {MASK} of the')
    ends = fill(config, params, tokenizer, f'{MASK} people of the {MASK}.', 1)
    assert ends[0][0].text.endswith(f'people of the {MASK}.') and ends[1][0].text.startswith(f'{MASK} people of the')


def test_command(replica, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(load, 'load_replica', lambda *names: asked.append(names) or replica)
    main(['--workdir', 'runs/x', '--arm', '30%', '--seed', '2', f'The {MASK} of the Union'])
    lines = capsys.readouterr().out.splitlines()
    assert [(str(workdir), arm, seed) for workdir, arm, seed in asked] == [('runs/x', '30%', 2)]
    assert lines[0] == f'{MASK} 1' and len(lines) == 6
    shown = [float(line.split('%')[0]) for line in lines[1:]]
    assert shown == sorted(shown, reverse=True) and sum(shown) <= 100.1


@pytest.mark.parametrize(
    ('args', 'said'),
    [
        (['The Union'], '--workdir'),
        (['--workdir', 'x', 'The Union'], r'no \[MASK\]'),
        (['--workdir', 'x', '--top', '0', MASK], '--top'),
        (['--workdir', 'x', MASK + ' people' * 30], 'tokens'),
    ],
)
def test_mistakes_are_one_line(replica, monkeypatch, args, said):
    monkeypatch.setattr(load, 'load_replica', lambda *names: replica)
    with pytest.raises(UserError, match=said) as error:
        main(args)
    assert '\n' not in str(error.value)


def test_a_configs_longest_stage_is_the_limit(replica):
    config, params, tokenizer = replica
    longer = dataclasses.replace(config, stages=(*config.stages, Stage(length=128, batch_size=1, steps=1)))
    assert len(fill(longer, params, tokenizer, MASK + ' people' * 30, 2)[0]) == 2
