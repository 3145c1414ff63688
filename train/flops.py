"""Floating-point operations of an update and of a run, counted from the config alone, by objective.

Nothing here needs JAX: configs match arms by their FLOPs before it starts.
"""

from collections.abc import Callable

from model.config import ModelConfig, generator_model
from model.flops import boundary_flops, encoder_flops, forward_flops, head_flops
from train.config import Config
from train.rates import copies, target_slots


def step_flops(config: Config, stage: int, slots: int = 0) -> float:
    """Operations of an update in a stage, forward and backward, a multiply-add as two.

    Args:
      slots: M, target slots a row; 0: as many as this config needs when it runs alone.
    """
    shape = config.stages[stage]
    slots = slots or target_slots([config.masking], shape.length)
    forward = FORWARD[config.objective.name]
    return 3 * forward(config, shape.batch_size * copies(config.masking), shape.length, slots)


def run_flops(config: Config) -> float:
    """Operations of all updates of a run."""
    return sum(stage.steps * step_flops(config, index) for index, stage in enumerate(config.stages))


def encoders(config: Config, length: int, slots: int) -> list[tuple[ModelConfig, int]]:
    """Every encoder that an update runs, and the positions of a row at which its last layer computes states."""
    found = [(config.model, config.objective.states(length, slots))]
    if config.objective.has_generator:
        found.append((generator_model(config.model, config.objective.generator), slots))
    return found


def mlm(config: Config, batch_size: int, length: int, slots: int) -> float:
    return forward_flops(config.model, batch_size, length, slots)


def mlm_with_pairs(config: Config, batch_size: int, length: int, slots: int) -> float:
    width = config.model.width
    of_tokens = head_flops(config.model, batch_size, slots)
    return encoder_flops(config.model, batch_size, length, slots + 1) + of_tokens + batch_size * 2 * width * (width + 2)


def mlm_with_boundary(config: Config, batch_size: int, length: int, slots: int) -> float:
    encoder = encoder_flops(config.model, batch_size, length, config.objective.states(length, slots))
    heads = head_flops(config.model, batch_size, slots) + boundary_flops(config.model, batch_size, slots)
    return encoder + heads


def generator(config: Config, batch_size: int, length: int, slots: int) -> float:
    """Of the generator's forward pass; its samples take no products."""
    if not config.objective.has_generator:
        return 0.0
    return forward_flops(generator_model(config.model, config.objective.generator), batch_size, length, slots)


def electra(config: Config, batch_size: int, length: int, slots: int) -> float:
    scored, width = length if config.objective.detect == 'all' else slots, config.model.width
    head = batch_size * scored * 2 * (width**2 + width)
    own = encoder_flops(config.model, batch_size, length, scored) + head
    return own + generator(config, batch_size, length, slots)


def replace_mlm(config: Config, batch_size: int, length: int, slots: int) -> float:
    return mlm(config, batch_size, length, slots) + generator(config, batch_size, length, slots)


def all_tokens_mlm(config: Config, batch_size: int, length: int, slots: int) -> float:
    gate = batch_size * length * 2 * config.model.width
    return mlm(config, batch_size, length, length) + gate + generator(config, batch_size, length, slots)


FORWARD: dict[str, Callable[[Config, int, int, int], float]] = {
    'mlm': mlm,
    'electra': electra,
    'replace_mlm': replace_mlm,
    'all_tokens_mlm': all_tokens_mlm,
    'mlm_nsp': mlm_with_pairs,
    'mlm_sop': mlm_with_pairs,
    'mlm_sbo': mlm_with_boundary,
}
"""Objective -> operations of one forward pass over B rows of L tokens with M target slots each."""
