"""The seam where objectives plug in.

The step (train/step.py) knows no objective. It masks the rows of a batch and gives them to the config's objective as
`Inputs`. First `weights` says what each term of the loss weighs over the whole batch; then, for each micro-batch,
`loss` gives the terms' sums, and the step differentiates

    sum over terms of  sums[term] / weights[term]

so that every term is divided once, by the weight of everything. Metrics are (sum, weight) pairs, added up over
micro-batches and steps and divided when they are written: those whose names end in `loss` in nats, all others in
percent.

To add one: a file here that ends in an `Objective`, its name and numbers in config.py, a line for it in table.py and in
train/flops.py, and a test. Parameters beside the encoder's come from
`declared`; evaluation and fine-tuning see what `encoder` leaves of them: the tree of `model.mlm`, with `head` if the
config says that it `predicts`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from data.vocabulary import Vocabulary
from model import mlm
from model.mlm import Params
from train.config import Config
from train.masking import Masked


class Inputs(NamedTuple):
    """Rows of a batch, copies side by side; every leaf leads with the same axis B."""

    masked: Masked
    tokens_BxL: jax.Array
    """As they are in the text."""
    document_ids_BxL: jax.Array
    noise_Bx3: jax.Array
    """uint32 words of each row's own, for what an objective draws (see `sampling.py`)."""
    type_ids_BxL: jax.Array | None = None
    """Of rows of pairs: 0 up to the first segment's [SEP], 1 up to the second's."""
    pair_labels_B: jax.Array | None = None
    """1 where the second segment is not what follows the first; None where that is not asked."""


Pairs = dict[str, tuple[jax.Array, jax.Array]]


class Objective(NamedTuple):
    """Pure functions; defaults are those of masked language modelling."""

    weights: Callable[[Config, Inputs], dict[str, jax.Array]]
    """Term -> what it weighs over these rows."""
    loss: Callable[[Params, Config, Vocabulary, Inputs, jax.Array], tuple[dict[str, jax.Array], Pairs]]
    """`loss(params, config, vocabulary, inputs, key)`: term -> its sum over these rows, with the term's factor in the
    loss; and metrics. The typed key is for dropout. A metric `loss` stands for the whole loss where there is one."""
    declared: Callable[[Config], Params] = lambda config: mlm.declared(config.model)
    """All parameters as boxes (`model.mlm.declared`)."""
    encoder: Callable[[Any], Params] = lambda params: params
    """What is evaluated and fine-tuned, from all parameters; their leaves may be stacked."""
