"""What `experiments.convert` does: between a workdir and a folder of `transformers`."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
from tokenizers import BertWordPieceTokenizer

from data.errors import UserError
from data.exported_tokenizer import export
from data.huggingface_tokenizer import HuggingFaceTokenizer
from data.sentencepiece_tokenizer import SentencePieceTokenizer
from data.tokenizer import Tokenizer, load_tokenizer
from experiments import workdir as workdirs
from experiments.ablation import Ablation, Arm
from experiments.load import load_replica
from model.huggingface import read_bert, write_bert
from train.checkpoints import Checkpoints
from train.cohort import Cohort, Replica
from train.config import Config, Stage
from train.program import Program

ARM = 'imported'
LEAST_SHARE = 0.9
"""Pieces of a tokenizer for each id of its model, at least."""


def bring_in(folder: Path, out: Path) -> str:
    """Makes a workdir of one replica, at step 0, of a model that `transformers` saved; returns a line on what came.

    A folder without a head for masked language modelling gets one with new weights.

    Raises:
      UserError: the folder is no BERT, ALBERT, RoBERTa or ELECTRA, or its tokenizer does not fit its weights.
    """
    model, params = read_bert(folder)
    tokenizer = read_tokenizer(folder, model.vocab_size)
    stage = Stage(length=model.max_length, batch_size=1, steps=1)
    replica = Replica(ARM, 0, Config(model=model, stages=(stage,)))
    cohort = Cohort('0', (replica,))
    program = Program.of(cohort, tokenizer.vocabulary)
    state = program.init()
    new = 'head' not in params
    known = {name: params[name] for name in state.params if name in params}
    stacked = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], known)
    state = state._replace(params={**state.params, **stacked})
    ablation = Ablation(
        name=ARM, claim=f'None: the weights of {folder.name}.', base=replica.config, arms=(Arm(ARM),), baseline=ARM
    )
    about = {
        'scale': 'cpu',
        'command': f'python -m experiments.convert hf:{folder.name}',
        'grid': None,
    }
    with workdirs.lock(out):
        workdir = workdirs.open_workdir(out, ablation, about)
        workdir.record['ablation']['arms'][ARM] = {}
        workdir.add({ARM: replica.config})
        workdir.plan([replica], slots=1)
        workdir.keep(tokenizer, text='')
        with Checkpoints(out / 'checkpoints' / cohort.name, keep=1) as checkpoints:
            checkpoints.save(0, state, {'replicas': [[ARM, 0]], 'tokenizer': tokenizer.vocabulary.fingerprint})
        workdir.save()
    count = sum(leaf.size for leaf in jax.tree.leaves(known))
    head = '; the folder has no MLM head, so it got a new one' if new else ''
    pooler = '; its pooler is left out (finetune --init hf:DIR starts from it)' if 'pooler' in params else ''
    return f'{out}: {model.layers} layers, width {model.width}, {count:,} parameters{head}{pooler}'


def take_out(path: Path, arm: str | None, seed: int | None, folder: Path) -> str:
    """Writes a replica's weights, config and tokenizer as `transformers` reads them; returns a line on what went.

    Raises:
      UserError: there is no such replica, or its model has no form there.
    """
    config, params, tokenizer, trained, *_ = load_replica(path, arm, seed)
    # Layers that are shared are an ALBERT's there, which has no detector.
    if 'detection' in trained and config.model.layers_share == 'none':
        params = {**params, 'detection': trained['detection']}
    write_bert(folder, config.model, params, tokenizer.vocabulary.pad)
    tokenizer.save(folder)
    if isinstance(tokenizer, SentencePieceTokenizer):  # for transformers; `bring_in` reads what `save` wrote
        export(tokenizer, folder)
    return f'{folder}: {", ".join(sorted(path.name for path in folder.iterdir()))}'


def read_tokenizer(folder: Path, model_size: int) -> Tokenizer:
    """The tokenizer of a folder of `transformers`, whose model has so many pieces.

    Raises:
      UserError: there is none that can be read, or it is another model's: it has more pieces than the model has ids, or
        far fewer.
    """
    tokenizer = _tokenizer(folder)
    size = tokenizer.vocabulary.size
    # Models may have some ids more, so that their number is a multiple of 64 or 128.
    if not LEAST_SHARE * model_size <= size <= model_size:
        raise UserError(f'{folder}: the tokenizer has {size} pieces, the model {model_size}: it is of another model')
    return tokenizer


def _tokenizer(folder: Path) -> Tokenizer:
    """From tokenizer.json, or SentencePiece's tokenizer.model as `take_out` leaves it, or BERT's vocab.txt."""
    files = [kind.FILE for kind in (HuggingFaceTokenizer, SentencePieceTokenizer)]
    if any((folder / name).is_file() for name in files):
        return load_tokenizer(folder)
    path = folder / 'vocab.txt'
    if not path.is_file():
        raise UserError(f'{folder} has none of {", ".join(files)}, vocab.txt')
    settings = folder / 'tokenizer_config.json'
    try:
        lowercase = json.loads(settings.read_text()).get('do_lower_case', True) if settings.is_file() else True
    except (OSError, ValueError, AttributeError):
        raise UserError(f'{settings} does not hold a JSON object') from None
    try:
        tree = BertWordPieceTokenizer(str(path), lowercase=lowercase).to_str()
    except Exception as error:  # the library raises bare Exception
        raise UserError(f'{path}: not a WordPiece vocabulary that can be read ({str(error)[:200]})') from None
    return HuggingFaceTokenizer(tree.encode(), str(path))
