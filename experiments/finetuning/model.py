"""A fine-tuned model in its workdir: weights of the chosen point for each seed, and what it takes to use them."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from data.errors import UserError
from data.tasks.task import Task
from data.tokenizer import Tokenizer, load_tokenizer
from experiments.config_json import from_json
from experiments.finetuning.workdir import read_finetuning
from experiments.workdir import TOKENIZER
from model.config import ModelConfig
from train.checkpoints import Checkpoints
from train.finetuning.network import Network
from train.finetuning.tune import Finished, Result

FOLDER = 'model'
_ANEW = 'fine-tune anew, with another --workdir'


@dataclass(frozen=True)
class Model:
    """One seed's."""

    network: Network
    params: Any
    tokenizer: Tokenizer
    task: Task
    """Without examples."""
    max_length: int
    stride: int
    threshold: float | None
    pairs: bool
    """Examples of the task are pairs of sentences."""


def save_model(path: Path, number: int, finished: Finished, results: list[Result]) -> None:
    """Writes the weights of some of a program's results, in place of those of an earlier program.

    Args:
      number: the program's, which must be higher than the earlier one's.
    """
    indices = np.array([finished.results.index(result) for result in results])
    params_R = {**finished.trained.frozen, **finished.trained.params}
    params_S = jax.tree.map(lambda leaf: leaf[indices], params_R)
    network, task = finished.program.network, finished.data.task
    about = {
        'network': dataclasses.asdict(network),
        'task': {name: getattr(task, name) for name in ('name', 'kind', 'labels', 'metrics', 'no_answer')},
        'written': dict(task.written),
        'seeds': [result.ft_seed for result in results],
        'thresholds': [result.threshold for result in results],
        'max_length': finished.data.max_length,
        'stride': finished.data.stride,
        'pairs': getattr(task.examples('train')[0], 'second', None) is not None,
    }
    with Checkpoints(path / FOLDER, keep=1) as checkpoints:
        checkpoints.save(number, params_S, about)


def load_model(path: Path, seed: int | None) -> Model:
    """The model of one fine-tuning seed, None: of the first.

    Raises:
      UserError: there is none yet, or none of this seed, it cannot be read, or the tokenizer is not the one that it was
        trained with.
    """
    asked = read_finetuning(path)
    try:
        tokenizer = load_tokenizer(path / TOKENIZER)
    except UserError as error:
        raise UserError(f'{path}/{TOKENIZER} cannot be read: {_ANEW} ({error})') from None
    if tokenizer.vocabulary.fingerprint != asked['tokenizer']:
        raise UserError(f'{path / TOKENIZER} is not the tokenizer that {path} was fine-tuned with')
    with Checkpoints(path / FOLDER, keep=1, log=lambda line: None) as checkpoints:
        about = checkpoints.newest_meta()
        if about is None:
            raise UserError(
                f'{path} has no fine-tuned model: if its experiments.finetune command has not finished, give it again; '
                f'else {_ANEW}'
            )
        seeds = about['seeds']
        if seed is not None and seed not in seeds:
            raise UserError(f'--seed {seed}: {path} has seeds {", ".join(map(str, seeds))}')
        fields = about['network']
        network = Network(**{**fields, 'model': from_json(ModelConfig, fields['model'])})
        restored = checkpoints.restore(_abstract(network, len(seeds)))
    if restored is None:
        raise UserError(f'{path}/{FOLDER} cannot be read: {_ANEW}')
    index = 0 if seed is None else seeds.index(seed)
    task = Task(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in about['task'].items()},
        splits={}, written=about['written'],
    )  # fmt: skip
    return Model(
        network, jax.tree.map(lambda leaf: leaf[index], restored[1]), tokenizer, task, about['max_length'],
        about['stride'], about['thresholds'][index], about['pairs'],
    )  # fmt: skip


def _abstract(network: Network, seeds: int) -> Any:
    shapes = jax.eval_shape(network.init, jax.random.key(0), np.uint32(0))
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((seeds, *leaf.shape), leaf.dtype), shapes)
