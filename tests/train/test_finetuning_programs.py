"""Programs of fine-tuning: replicas together and alone, resumed and not, frozen and failed."""

import dataclasses
import types

import jax
import numpy as np
import pytest

from data.errors import UserError
from tests.train import finetuning_case as case
from train.checkpoints import Checkpoints
from train.finetuning.loop import fine_tune
from train.finetuning.records import StepRecords
from train.loop import Stopped

SHORT = case.features('classification', 22, longest=13)
"""One bucket, so one compilation; the sixth batch is not full."""
PATIENT = dataclasses.replace(case.CONFIG, epochs=3, patience=1)


def trained(program, features=SHORT, checkpoints=None, stop_at=None, selection=None, meta=None):
    """What came of it, and the records. `stop_at`: a signal comes in this step's log line."""
    preemption, written = types.SimpleNamespace(requested=False), []

    def write(record):
        written.append(record)
        preemption.requested = preemption.requested or record['step'] == stop_at

    program_ = dataclasses.replace(
        program,
        replicas=tuple(
            dataclasses.replace(
                replica,
                config=dataclasses.replace(replica.config, run=dataclasses.replace(replica.config.run, log_every=1)),
            )
            for replica in program.replicas
        ),
    )
    records = StepRecords(program_, [{'replica': i} for i in range(len(program.replicas))], write, written.append)
    found = fine_tune(
        program_, features, selection, records,
        checkpoints=checkpoints, preemption=preemption, meta=meta or {}, name='case', log=written.append,
    )  # fmt: skip
    return found, written


def assert_equal(a, b):
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y, err_msg=jax.tree_util.keystr(path))


def assert_close(a, b, atol=2e-6):
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, atol=atol, err_msg=jax.tree_util.keystr(path))


def test_replicas_train_together_as_each_would_alone():
    """Two encoders, two seeds, two learning rates; the last, with its rate, fails and leaves the others as they are."""
    slow = dataclasses.replace(case.CONFIG, learning_rate=1e-4, layerwise_decay=0.5)
    mad = dataclasses.replace(case.CONFIG, learning_rate=1e38)
    two = case.encoders(2)
    together = case.program(encoders_=two, seeds=(0, 3), points=(case.CONFIG, slow, mad))
    assert len(together.replicas) == 12
    found, records = trained(together)
    assert {i for i in found.failed} == {2, 5, 8, 11}
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found.params))
    assert sum(isinstance(record, str) and 'not finite' in record for record in records) == 4
    for index in (0, 10):
        replica = together.replicas[index]
        alone = case.program(encoders_=two, seeds=(replica.ft_seed,), points=(replica.config,))
        alone = dataclasses.replace(alone, replicas=(replica,))
        expected, _ = trained(alone)
        assert_close(jax.tree.map(lambda leaf, index=index: leaf[index], found.params),
                     jax.tree.map(lambda leaf: leaf[0], expected.params))  # fmt: skip
    heads = np.asarray(found.params['head']['output']['kernel'])
    assert len({head.tobytes() for head in heads}) == 12
    losses = [record['loss'] for record in records if isinstance(record, dict) and record['replica'] == 0]
    assert len(losses) == 12 and np.isfinite(losses).all()


def test_a_resumed_run_is_the_run_that_was_not_stopped(tmp_path):
    """With early stopping, whose history and best weights come back too."""
    program = case.program(seeds=(0, 1), points=(PATIENT,))
    asked = []

    def selection(params, frozen):
        asked.append(float(np.asarray(params['head']['output']['bias']).sum()))
        return np.array([[0.5, 0.1], [0.6, 0.3], [0.4, 0.9]][len(asked) - 1])

    whole, records = trained(program, selection=selection)
    assert whole.epochs_R.tolist() == [2, 3]
    asks, written = list(asked), [record for record in records if isinstance(record, dict)]
    asked.clear()
    with Checkpoints(tmp_path, keep=1) as checkpoints, pytest.raises(Stopped, match='stopped at step 8 of 18 of case'):
        trained(program, checkpoints=checkpoints, stop_at=7, selection=selection, meta={'rows': 22})
    with Checkpoints(tmp_path, keep=1) as checkpoints:
        resumed, more = trained(program, checkpoints=checkpoints, selection=selection, meta={'rows': 22})
    assert_equal(resumed.params, whole.params)
    assert asked == asks and resumed.epochs_R.tolist() == [2, 3]
    assert 'case: goes on from step 8 of 18' in more and 'case: step 18 of 18' in more
    assert [record for record in more if isinstance(record, dict) and record['step'] > 9][0]['loss'] == pytest.approx(
        next(record['loss'] for record in written if record['step'] == 10), rel=1e-6
    )
    with Checkpoints(tmp_path, keep=1) as checkpoints:
        again, more = trained(program, checkpoints=checkpoints, selection=selection, meta={'rows': 22})
    assert_equal(again.params, whole.params)
    assert not [record for record in more if isinstance(record, dict)], 'a finished run does nothing'
    with Checkpoints(tmp_path, keep=1) as checkpoints, pytest.raises(UserError, match='of another fine-tuning'):
        trained(program, checkpoints=checkpoints, selection=selection, meta={'rows': 23})


def test_early_stopping_of_all_ends_the_run():
    program = case.program(points=(PATIENT,))
    scores = iter([0.5, 0.4])
    found, records = trained(program, selection=lambda params, frozen: np.array([next(scores)]))
    assert found.epochs_R.tolist() == [1]
    assert max(record['step'] for record in records) == 12


@pytest.mark.parametrize('kind', ['classification', 'tagging'])
def test_a_frozen_encoder_stays_and_its_head_learns(kind):
    program = case.program(kind, frozen=2, points=(dataclasses.replace(case.CONFIG, learning_rate=1e-2),))
    before, _ = program.init()
    found, records = trained(program, case.features(kind, 22, longest=13))
    assert set(found.params) == {'head'} and set(found.frozen) == {'encoder'}
    kept = {name: part for name, part in program.encoders.params_E.items() if name != 'head'}
    assert_equal(found.frozen['encoder'], kept)
    change = jax.tree.map(lambda a, b: float(np.abs(np.asarray(a) - b).max()), found.params, before.params)
    assert min(jax.tree.leaves(change)) > 0
    assert [len(path) for path, _ in jax.tree_util.tree_leaves_with_path(before.opt_state)]
    moments = [leaf.shape for leaf in jax.tree.leaves(before.opt_state)]
    assert not any(case.MODEL.padded_vocab_size in shape for shape in moments), 'nothing is kept for the encoder'
    assert len(records) == 12


def test_an_imported_pooler_is_where_the_head_starts():
    encoders = case.encoders(2)
    pooler = {'dense': {'kernel': np.ones((2, 16, 16), np.float32), 'bias': np.ones((2, 16), np.float32)}}
    encoders = dataclasses.replace(encoders, params_E={**encoders.params_E, 'pooler': pooler})
    state, frozen = case.program(encoders_=encoders).init()
    assert frozen == {} and set(state.params) == {'encoder', 'head'} and 'pooler' not in state.params['encoder']
    assert_equal(state.params['head']['pooler'], pooler)
    state, _ = case.program('tagging', encoders_=encoders).init()
    assert set(state.params['head']) == {'output'}


def test_outputs_do_not_depend_on_batch_size_or_padding():
    features = case.features('span', 9, longest=20)
    found = []
    for size in (1, 3, 8, 9, 10):
        program = case.program('span', points=(dataclasses.replace(case.CONFIG, evaluation_batch_size=size),))
        state, frozen = program.init()
        found.append(program.predict(state.params, frozen, features))
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-6)
    assert found[0].shape == (1, len(features.tokens_T), 2)
    params = jax.tree.map(lambda leaf: leaf[0], state.params)
    for row in range(3):
        inside = slice(features.offsets[row], features.offsets[row + 1])
        tokens = features.tokens_T[None, inside]
        expected = program.network(params, tokens, np.ones_like(tokens), np.zeros_like(tokens))
        np.testing.assert_allclose(found[0][0, inside], expected[0], atol=1e-5)
