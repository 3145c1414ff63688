"""A trained replica, read from a workdir."""

from pathlib import Path
from typing import Any

import jax

from data.errors import UserError
from data.prepare import store_for
from data.tokenizer import Tokenizer
from experiments.workdir import read_workdir
from train.checkpoints import Checkpoints
from train.config import Config
from train.program import Program
from train.sharding import make_mesh


def load_replica(workdir: Path, arm: str | None = None, seed: int | None = None) -> tuple[Config, Any, Tokenizer]:
    """Config, parameters and tokenizer of a replica at its newest complete checkpoint, on one device.

    Args:
      arm: None: the baseline.
      seed: None: the arm's first.

    Raises:
      UserError: no workdir, no such arm or seed, or no checkpoint yet; the store is gone or was made by another
        tokenizer.
    """
    held = read_workdir(workdir)
    cohort_of = {(replica.arm, replica.seed): cohort for cohort in held.cohorts for replica in cohort.replicas}
    arm = held.record['ablation']['baseline'] if arm is None else arm
    seeds = sorted(seed for name, seed in cohort_of if name == arm)
    if not seeds:
        names = ', '.join(dict.fromkeys(name for name, _ in cohort_of))
        raise UserError(f'--arm {arm} is not in {workdir}; the arms there are {names or "none"}')
    seed = seeds[0] if seed is None else seed
    if seed not in seeds:
        known = ', '.join(map(str, seeds))
        raise UserError(f'--seed {seed} of arm {arm} is not in {workdir}; the seeds there are {known}')
    cohort = cohort_of[arm, seed]
    tokenizer = store_for(cohort.config.data, log=lambda line: None).tokenizer
    if tokenizer.vocabulary.fingerprint != held.record['tokenizer']:
        raise UserError(f'{workdir} was trained with another tokenizer than that of the store --data.store now names')
    program = Program(cohort, tokenizer.vocabulary, make_mesh((1, 1), len(cohort.replicas), (1,)))
    with Checkpoints(Path(workdir) / 'checkpoints' / cohort.name) as checkpoints:
        restored = checkpoints.restore(program.abstract_state())
    if restored is None:
        raise UserError(f'{workdir} has no checkpoint of arm {arm}, seed {seed} yet: train it first')
    index = next(i for i, each in enumerate(cohort.replicas) if (each.arm, each.seed) == (arm, seed))
    return cohort.replicas[index].config, jax.tree.map(lambda leaf: leaf[index], restored[1].params), tokenizer
