"""What is planned: the cohorts that a config's replicas would train in, without its corpus."""

import dataclasses
from pathlib import Path

import numpy as np

from data.errors import UserError
from data.huggingface_tokenizer import HuggingFaceTokenizer
from data.vocabulary import Vocabulary
from experiments.ablation import Ablation
from train.cohort import Cohort, Replica, cohorts
from train.config import Config
from train.mesh import side_by_side


def vocabulary_of(config: Config) -> Vocabulary:
    """A vocabulary of the size that the config names; of a SentencePiece tokenizer, which is still to be trained, with
    its specials first.

    Raises:
      UserError: the tokenizer.json that it names is missing or no tokenizer.
    """
    data = config.data
    if data.tokenizer.startswith('hf:'):
        path = Path(data.tokenizer.removeprefix('hf:'))
        try:
            return HuggingFaceTokenizer(path.read_bytes(), str(path)).vocabulary
        except OSError as error:
            raise UserError(f'--data.tokenizer {data.tokenizer}: {error.strerror}') from None
    size = config.model.vocab_size or data.vocab_size
    ordinary = np.arange(5, size, dtype=np.int32)
    specials = dict(pad=0, unk=1, cls=2, sep=3, mask=4)
    return Vocabulary(size=size, **specials, ordinary=ordinary, fingerprint='', starts_word=np.ones(size, bool))


def planned_cohorts(ablation: Ablation, seeds: int, chips: int, vocabulary: Vocabulary) -> list[Cohort]:
    """The cohorts that `experiments.ablate` would train on so many chips."""
    configs = {arm.name: ablation.config(arm.name) for arm in ablation.arms}
    configs = {
        arm: dataclasses.replace(config, model=dataclasses.replace(config.model, vocab_size=vocabulary.size))
        for arm, config in configs.items()
    }
    replicas = [Replica(arm, seed, config) for seed in range(seeds) for arm, config in configs.items()]
    mesh = configs[ablation.baseline].run.mesh
    return cohorts(replicas, ablation.baseline, side_by_side(mesh, chips))
