"""The encoder that is fine-tuned, from where --init says."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from data.config import DataConfig
from data.errors import UserError
from data.tokenizer import Tokenizer
from experiments.exchange import read_tokenizer
from experiments.load import load_replica
from experiments.workdir import read_workdir
from model.config import ModelConfig
from model.huggingface import read_bert
from train.finetuning.encoders import Encoders


@dataclass(frozen=True)
class Source:
    """One encoder, with all that a fine-tuning needs to know of it."""

    encoders: Encoders
    tokenizer: Tokenizer
    corpus: DataConfig | None
    """What it was pretrained on; None where that is not known."""

    @property
    def fingerprint(self) -> str:
        """sha256 of its weights."""
        digest = hashlib.sha256()
        for path, leaf in jax.tree_util.tree_leaves_with_path(self.encoders.params_E):
            digest.update(jax.tree_util.keystr(path).encode() + np.asarray(leaf).tobytes())
        return digest.hexdigest()


def read_encoder(init: str, arm: str | None, seed: int | None) -> Source:
    """The encoder that --init names: WORKDIR[@STEP] of a pretraining run or an ablation, or hf:DIR.

    Args:
      arm: of a workdir; None: its baseline.
      seed: of a workdir; None: the arm's first.

    Raises:
      UserError: there is no such encoder.
    """
    if not init:
        raise UserError('--init is missing: name the workdir of a pretraining run, or hf:DIR of a BERT of transformers')
    if init.startswith('hf:'):
        if arm is not None or seed is not None:
            raise UserError(f'--init {init} has no arms and seeds: leave --arm and --seed out')
        folder = Path(init.removeprefix('hf:'))
        model, params = read_bert(folder)
        params = jax.tree.map(np.asarray, params)
        return _source((folder.name, 0), model, params, model.max_length, read_tokenizer(folder, model.vocab_size))
    path, _, step = init.rpartition('@')
    if not (path and step.isdecimal()):
        path, step = init, ''
    config, params, tokenizer = load_replica(Path(path), arm, seed, int(step) if step else None)
    arm = arm or read_workdir(Path(path)).record['ablation']['baseline']
    longest = max(stage.length for stage in config.stages)
    return _source((arm, seed or 0), config.model, params, longest, tokenizer, config.data)


def _source(
    name: tuple[str, int],
    model: ModelConfig,
    params: Any,
    longest: int,
    tokenizer: Tokenizer,
    corpus: DataConfig | None = None,
) -> Source:
    return Source(Encoders.one(name, model, params, longest), tokenizer, corpus)
