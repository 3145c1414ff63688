"""What a child process with eight devices does for the tests of sharding: `python -m tests.train.sharding_case FOLDER`.

One update, its masks, an evaluation and the collectives of a small cohort on several meshes, written to FOLDER.
"""

import dataclasses
import json
import math
import sys
from pathlib import Path

import jax
import numpy as np

from data.loader import HostBatch
from experiments.planning.collectives import KINDS
from experiments.planning.groups import axes_of, groups
from experiments.planning.hlo import parse
from tests.train.step_case import VOCABULARY, cohort, config, rows
from train.checkpoints import Checkpoints
from train.config import RunConfig, Stage
from train.evaluate import make_score
from train.fixed_masks import fixed_settings
from train.masking import document_ids, mask_rows
from train.objectives.config import ObjectiveConfig
from train.program import Program
from train.rates import target_slots
from train.replicas import ReplicaProgram, over_replicas
from train.settings import Settings
from train.sharding import placed

ONE = (1, 1, 1, 1)
MESHES = ((1, 8, 1, 1), (1, 4, 2, 1), (1, 2, 2, 2), (2, 4, 1, 1))
"""(arm, data, fsdp, tensor)."""
MIXED = (2, 1, 2, 2)
MICRO_BATCHES = (1, 2, 4)
ROWS, LENGTH = 32, 24


def case(mesh, micro_batches=1, name='adamw', objective='mlm') -> Program:
    """Two replicas that mask at other rates, in float32 and without dropout."""
    arms = {
        arm: dataclasses.replace(
            config(rate, micro_batches, name=name),
            objective=ObjectiveConfig(objective),
            stages=(Stage(length=LENGTH, batch_size=ROWS, steps=10),),
            run=RunConfig(mesh=mesh),
        )
        for arm, rate in {'low': 0.15, 'high': 0.4}.items()
    }
    return Program.of(cohort(arms), VOCABULARY)


def uneven_rows(program: Program, count: int = ROWS) -> HostBatch:
    """Rows of 5 to 24 tokens and padding, in order: devices and micro-batches have very different shares of targets."""
    host = rows(program.cohort.seeds, 0, count, LENGTH)
    for row in range(count):
        host.tokens_SxBxL[:, row, 5 + row * (LENGTH - 4) // count :] = VOCABULARY.pad
    return host


def updated(program: Program, start=None):
    """The compiled step, the state after one update and its metrics; `start` is a state in host memory."""
    wanted = jax.tree.map(lambda leaf: leaf.sharding, program.abstract_state())
    step, state = program.compile_step(0), program.init() if start is None else jax.device_put(start, wanted)
    new, metrics = step(state, program.settings(0), program.batch(uneven_rows(program), 0, 0))
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state)), 'the state is donated'
    assert jax.tree.map(lambda leaf: leaf.sharding, new) == wanted, 'a step leaves the state where it was'
    return step, new, metrics


def sent(step, mesh) -> list[dict]:
    """What the devices send each other in a compiled step."""
    found = []
    for computation in parse(step.as_text()).computations.values():
        for each in computation.instructions.values():
            kind = each.opcode.removesuffix('-start')
            if kind in KINDS:
                axes = axes_of(groups(each.attributes, mesh.size), mesh)
                elements = max(math.prod(array.shape) for array in each.result)
                found.append({'kind': kind, 'axes': axes, 'elements': elements, 'source': each.source})
    return found


def named(tree, prefix: str) -> dict[str, np.ndarray]:
    found = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {prefix + jax.tree_util.keystr(path, simple=True, separator='.'): np.asarray(leaf) for path, leaf in found}


def outcome(mesh, micro_batches: int, start, objective: str = 'mlm') -> tuple[dict[str, np.ndarray], list[dict]]:
    """(loss, targets and gradients of the replicas, collectives of the step)."""
    program = case(mesh, micro_batches, objective=objective)
    step, state, metrics = updated(program, start)
    # The first moment is the gradient times 1 - beta1.
    return named(state.opt_state[0].mu, 'gradient.') | named(metrics, 'metric.'), sent(step, program.mesh)


def masks(mesh) -> dict[str, np.ndarray]:
    program = case(mesh)
    slots = target_slots([replica.config.masking for replica in program.cohort.replicas], LENGTH)

    def mask(settings, batch):
        tokens, numbers, epochs = batch.tokens_SxBxL[0], batch.row_ids_SxB[0], batch.epochs_SxB[0]
        ids = document_ids(tokens, VOCABULARY)
        return mask_rows(tokens, ids, numbers, epochs, settings, VOCABULARY, slots=slots, copies=2)

    batch = program.batch(uneven_rows(program), 0, 0)
    placed_masks = jax.jit(over_replicas(mask, program.mesh), out_shardings=placed(program.mesh, 'replica', 'batch'))
    return named(placed_masks(program.settings(0), batch)._asdict(), '')


def scores(mesh, params) -> dict[str, np.ndarray]:
    """Of held-out rows whose number the devices do not divide."""
    program = case(mesh)
    score = ReplicaProgram(make_score(program.cohort.config, VOCABULARY, 16, {'token'}), program.mesh, 10)
    host = uneven_rows(program, 21)
    settings = Settings(*(np.stack([leaf, leaf]) for leaf in fixed_settings(0.4)))
    params = jax.device_put(params, jax.tree.map(lambda leaf: leaf.sharding, program.abstract_state().params))
    return named(score((params, settings), (host.tokens_SxBxL[0], host.row_ids_SxB[0], None))._asdict(), '')


def restore_elsewhere(start, folder: Path) -> None:
    """A state saved on one mesh is the same, bit by bit, on others."""
    saved = jax.device_put(start, jax.tree.map(lambda leaf: leaf.sharding, case((1, 4, 2, 1)).abstract_state()))
    with Checkpoints(folder) as checkpoints:
        checkpoints.save(1, saved, {})
        checkpoints.wait()
        for mesh in (ONE, (1, 2, 2, 2), (2, 2, 2, 1), (1, 1, 1, 2)):
            wanted = case(mesh).abstract_state()
            _, state, _ = checkpoints.restore(wanted)
            for a, b, c in zip(*map(jax.tree.leaves, (saved, state, wanted)), strict=True):
                assert b.sharding == c.sharding, mesh
                assert np.array_equal(a, b), mesh


def main(folder: str) -> None:
    assert jax.device_count() == 8
    found = {}
    start = jax.device_get(case(ONE).init())
    for mesh in (ONE, *MESHES):
        name = '-'.join(map(str, mesh))
        for micro_batches in MICRO_BATCHES if mesh != ONE else (1,):
            arrays, messages = outcome(mesh, micro_batches, start)
            np.savez(f'{folder}/step-{name}-{micro_batches}.npz', **arrays)
            found[f'{name}-{micro_batches}'] = messages
        np.savez(f'{folder}/masks-{name}.npz', **masks(mesh))
    for mesh in (ONE, MIXED):
        name, lamb = '-'.join(map(str, mesh)), case(mesh, name='lamb')
        np.savez(f'{folder}/init-{name}.npz', **named(case(mesh).init().params, ''))
        np.savez(f'{folder}/scores-{name}.npz', **scores(mesh, start.params))
        zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), lamb.abstract_state())
        step, state, _ = updated(lamb, zeros._replace(params=start.params))
        found[f'{name}-lamb'] = sent(step, lamb.mesh)
        change = jax.tree.map(lambda new, old: np.asarray(new) - old, state.params, start.params)
        np.savez(f'{folder}/lamb-{name}.npz', **named(change, ''))
    start_with_head = jax.device_get(case(ONE, objective='mlm_sbo').init())
    for mesh, micro_batches in ((ONE, 1), (MIXED, 2)):
        name = '-'.join(map(str, mesh))
        arrays, messages = outcome(mesh, micro_batches, start_with_head, 'mlm_sbo')
        np.savez(f'{folder}/boundary-{name}.npz', **arrays)
        found[f'{name}-boundary'] = messages
    restore_elsewhere(start, Path(folder) / 'checkpoints')
    Path(folder, 'collectives.json').write_text(json.dumps(found))


if __name__ == '__main__':
    main(sys.argv[1])
