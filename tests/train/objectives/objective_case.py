"""Small configs of each objective, and the rows and parameters that its loss is tested on."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp

from model.config import GeneratorConfig
from tests.train import step_case
from tests.train.step_case import VOCABULARY
from train.config import Config
from train.masking import document_ids, mask_rows, pair_ids, sample_noise
from train.objectives.config import ObjectiveConfig
from train.objectives.objective import Inputs
from train.objectives.table import objective_of
from train.rates import target_slots
from train.settings import settings_at
from train.step import init_params

SHARES = {
    'embeddings': GeneratorConfig(width=0.5),
    'token': GeneratorConfig(width=0.5, share='token'),
    'disentangled': GeneratorConfig(width=1.0, layers=0.5, share='disentangled'),
    'weights': GeneratorConfig(width=1.0, share='weights'),
    'none': GeneratorConfig(width=0.5, share='none'),
}


def config(name: str = 'electra', share: str = 'embeddings', rate: float = 0.3, **fields) -> Config:
    has_none = fields.get('sampler') == 'uniform' or 'rows' in fields
    generator = {} if has_none else {'generator': SHARES[share]}
    return dataclasses.replace(step_case.config(rate), objective=ObjectiveConfig(name=name, **generator, **fields))


def inputs(config: Config, step: int = 0, rows: slice = slice(None), length: int = 24) -> Inputs:
    """What the step gives to an objective, for some of 8 rows."""
    host = step_case.rows((0,), step, length=length)
    tokens, numbers, epochs = (array[0][rows] for array in host[:3])
    settings = settings_at(config, 0, 0)
    ids, types, labels = document_ids(jnp.asarray(tokens), VOCABULARY), None, None
    if config.objective.has_pairs:
        ids, types = pair_ids(jnp.asarray(tokens), VOCABULARY)
    if config.objective.judges_pairs:
        labels = jnp.asarray(numbers) // 2 % 2
    slots = target_slots([config.masking], tokens.shape[1])
    masked = mask_rows(jnp.asarray(tokens), ids, numbers, epochs, settings, VOCABULARY, slots=slots, copies=1)
    noise = sample_noise(tokens.shape[1], numbers, epochs, settings, 1)
    return Inputs(masked, jnp.asarray(tokens), ids, noise, types, labels)


def params(config: Config, seed: int = 0, scale: float = 3.0):
    """Initial weights, but larger: logits that differ."""
    drawn = init_params(jax.random.key(seed), config)
    return jax.tree.map(lambda leaf: leaf * scale if leaf.ndim > 1 else leaf + 0.1, drawn)


@partial(jax.jit, static_argnums=1)
def loss(params, config: Config, inputs: Inputs):
    """The terms' sums and the metrics, with dropout's key but no dropout."""
    return objective_of(config).loss(params, config, VOCABULARY, inputs, jax.random.key(1))


@partial(jax.jit, static_argnums=1)
def gradients(params, config: Config, inputs: Inputs):
    """Term -> the gradient of its sum; 'all' -> that of all terms' sum."""
    objective = objective_of(config)

    def sums(params):
        return objective.loss(params, config, VOCABULARY, inputs, jax.random.key(1))[0]

    found, back = jax.vjp(sums, params)
    each = {term: back({name: jnp.float32(name == term) for name in found})[0] for term in found}
    return {**each, 'all': back(jax.tree.map(jnp.ones_like, found))[0]}
