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
from model.huggingface import read_bert
from train.finetuning.encoders import Encoders, ready_for_pairs
from train.metrics import read


@dataclass(frozen=True)
class Source:
    """One encoder, with all that a fine-tuning needs to know of it."""

    encoders: Encoders
    tokenizer: Tokenizer
    corpus: DataConfig | None
    """What it was pretrained on; None where that is not known."""
    pretraining: dict[str, Any]
    """What a workdir says of how it came about: pretraining (its config's name), scale, step and loss by rate."""

    @property
    def about(self) -> dict[str, Any]:
        """Its size and how it came about, for records."""
        model, leaves = self.encoders.model, jax.tree.leaves(self.encoders.params_E)
        return {
            'layers': model.layers,
            'width': model.width,
            'parameters': sum(leaf.size for leaf in leaves),
            **self.pretraining,
        }

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
        raise UserError(
            '--init is missing: name the workdir of a pretraining run, or hf:DIR of an encoder of transformers'
        )
    if init.startswith('hf:'):
        if arm is not None or seed is not None:
            raise UserError(f'--init {init} has no arms and seeds: leave --arm and --seed out')
        folder = Path(init.removeprefix('hf:'))
        model, params = read_bert(folder)
        encoders = Encoders.one((folder.name, 0), model, jax.tree.map(np.asarray, params), model.max_length)
        return Source(encoders, read_tokenizer(folder, model.vocab_size), None, {})
    path, _, step = init.rpartition('@')
    if not (path and step.isdecimal()):
        path, step = init, ''
    workdir = Path(path)
    loaded = load_replica(workdir, arm, seed, int(step) if step else None)
    config, record = loaded.config, read_workdir(workdir).record
    name = (loaded.arm, loaded.seed)
    longest = max(stage.length for stage in config.stages)
    pretraining = {
        'pretraining': record['ablation']['name'],
        'scale': record['scale'],
        'step': loaded.step,
        'loss': _losses(workdir, name, loaded.step),
    }
    encoders = Encoders.one(name, config.model, ready_for_pairs(loaded.params, config), longest)
    return Source(encoders, loaded.tokenizer, config.data, pretraining)


def _losses(workdir: Path, name: tuple[str, int], step: int) -> dict[str, float]:
    """Evaluation rate -> the replica's loss at a step on held-out text; empty if it was not measured there."""
    return {
        f'{record["eval_rate"]:g}': record['value']
        for record in read(workdir)
        if (record['kind'], record.get('metric'), record.get('step')) == ('figure', 'loss', step)
        and (record['arm'], record['seed']) == name
    }
