"""A trained replica out of a workdir."""

from pathlib import Path
from typing import Any, NamedTuple

import jax

from data.errors import UserError
from data.tokenizer import Tokenizer, load_tokenizer
from experiments.workdir import TOKENIZER, read_workdir
from train.checkpoints import Checkpoints
from train.config import Config
from train.mesh import make_mesh
from train.program import Program


class Loaded(NamedTuple):
    """A replica as it was at a step."""

    config: Config
    params: Any
    """The tree of `model.mlm`."""
    tokenizer: Tokenizer
    trained: Any
    """All that was trained: other heads and a generator, too."""
    arm: str
    seed: int
    step: int


def load_replica(workdir: Path, arm: str | None = None, seed: int | None = None, step: int | None = None) -> Loaded:
    """One replica, from a checkpoint.

    Args:
      arm: the baseline if not given.
      seed: the arm's first if not given.
      step: that of the checkpoint; the newest if not given.

    Raises:
      UserError: there is no such arm or seed, or no checkpoint of it yet.
    """
    opened = read_workdir(workdir)
    arm = opened.record['ablation']['baseline'] if arm is None else arm
    seeds = [r.seed for cohort in opened.cohorts for r in cohort.replicas if r.arm == arm]
    if not seeds:
        arms = sorted({r.arm for cohort in opened.cohorts for r in cohort.replicas})
        raise UserError(f'--arm {arm!r} is not in {workdir}: it has {", ".join(map(repr, arms))}')
    seed = min(seeds) if seed is None else seed
    if seed not in seeds:
        raise UserError(f'--seed {seed}: arm {arm!r} of {workdir} has seeds {", ".join(map(str, sorted(seeds)))}')
    cohort = next(c for c in opened.cohorts if (arm, seed) in [(r.arm, r.seed) for r in c.replicas])
    index = [(r.arm, r.seed) for r in cohort.replicas].index((arm, seed))
    config = cohort.replicas[index].config
    tokenizer = load_tokenizer(Path(workdir) / TOKENIZER)
    if tokenizer.vocabulary.fingerprint != opened.record['tokenizer']:
        raise UserError(f'{workdir}/{TOKENIZER} is not the tokenizer that {workdir} was trained with')
    # On one device, whatever mesh it was trained on.
    program = Program(cohort, tokenizer.vocabulary, make_mesh((1, 1, 1, 1), len(cohort.replicas)))
    with Checkpoints(Path(workdir) / 'checkpoints' / cohort.name, keep=1) as checkpoints:
        steps = checkpoints.steps()
        restored = checkpoints.restore(program.abstract_state(), only=step)
    if restored is None and step is not None and steps:
        raise UserError(f'{workdir} has no checkpoint of step {step}: it has {", ".join(map(str, steps))}')
    if restored is None:
        raise UserError(f'{workdir} has no checkpoint of arm {arm!r}, seed {seed} yet')
    trained = jax.tree.map(lambda leaf: leaf[index], restored[1].params)
    return Loaded(config, program.encoders(trained), tokenizer, trained, arm, seed, restored[0])
