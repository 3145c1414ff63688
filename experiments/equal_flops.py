"""Runs that take the same training FLOPs, as the report counts them."""

import dataclasses
from functools import lru_cache

from data.build import read_tokenizer
from experiments.config_paths import changed
from train.config import Config, Stage
from train.flops import run_flops


def flops(config: Config) -> float:
    """Training FLOPs of a run; before its store is there, with as many pieces as its tokenizer has or is to have.

    Raises:
      UserError: a tokenizer that is named cannot be read.
    """
    data = config.data
    pieces = _pieces(data.tokenizer) if data.tokenizer.startswith('hf:') else data.vocab_size
    return run_flops(changed(config, {'model.vocab_size': config.model.vocab_size or pieces}))


@lru_cache
def _pieces(tokenizer: str) -> int:
    return read_tokenizer(tokenizer).vocabulary.size


def matched(config: Config, like: Config) -> tuple[Stage, ...]:
    """The stages of `config` with their steps changed by one factor, so that it takes the FLOPs of `like`.

    Steps are whole: the last stage takes up what rounding the others leaves.
    """

    def cost(stages: list[Stage]) -> float:
        return flops(changed(config, {'stages': tuple(stages)})) if stages else 0.0

    wanted = flops(like)
    factor = wanted / flops(config)
    *stages, last = (dataclasses.replace(stage, steps=max(1, round(factor * stage.steps))) for stage in config.stages)
    step = dataclasses.replace(last, steps=1)
    steps = max(1, round((wanted - cost(stages)) / cost([step])))
    return (*stages, dataclasses.replace(last, steps=steps))
