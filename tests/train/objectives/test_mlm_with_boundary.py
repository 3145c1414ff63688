"""The span-boundary objective beside MLM: spans and both terms by plain loops, their gradients, and whole updates."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from model import mlm
from model.config import LONGEST_OFFSET
from tests.train import reference_masking as reference
from tests.train import step_case
from tests.train.objectives import objective_case
from tests.train.objectives.objective_case import gradients, inputs, loss, params
from tests.train.objectives.test_electra import by_path, learnt, moved
from tests.train.step_case import SIZE, VOCABULARY, cohort, trained
from train.checkpoints import Checkpoints
from train.config import Config, Stage
from train.masking import document_ids, mask_rows
from train.objectives.mlm_with_boundary import boundaries
from train.objectives.table import objective_of
from train.program import Program
from train.units import UNIT_NUMBERS

LENGTH = 48
TWO_ROWS = dict(length=LENGTH, rows=slice(0, 2))


def config(rate: float, name: str = 'mlm_sbo', **model) -> Config:
    made = objective_case.config(name, rate=rate, rows='full_sentences')
    return dataclasses.replace(
        made,
        model=dataclasses.replace(made.model, max_length=LENGTH, **model),
        stages=(Stage(length=LENGTH, batch_size=8, steps=30),),
    )


def spans_of(chosen_L) -> list[range]:
    """Stretches of chosen tokens, by a plain loop."""
    found = []
    for position in np.flatnonzero(chosen_L):
        goes_on = found and found[-1].stop == position
        found.append(range(found.pop().start if goes_on else position, position + 1))
    return found


def layer(x, dense, norm):
    x = x @ dense['kernel'] + dense['bias']
    x = x * 0.5 * (1 + jax.scipy.special.erf(x / math.sqrt(2)))
    deviation = jnp.sqrt(jnp.mean((x - x.mean()) ** 2) + 1e-12)
    return (x - x.mean()) / deviation * norm['scale'] + norm['bias']


@jax.jit
def of_a_token(own, table, left, right, place, label):
    """Loss of one token, and the likeliest id."""
    x = layer(jnp.concatenate([left, right, own['position']['embedding'][place]]), own['dense'], own['norm'])
    x = layer(x, own['output']['dense'], own['output']['norm'])
    logits = table @ x + own['output']['bias'][:SIZE]
    return jax.nn.logsumexp(logits) - logits[label], logits.argmax()


def plain_loss(weights, run: Config, rows) -> tuple[jax.Array, int]:
    """The boundary term, one span and one token after another, and the right guesses."""
    states_BxLxD = mlm.encode(weights, run.model, rows.masked.inputs_BxL, rows.document_ids_BxL)
    table, total, right = weights['embeddings']['token']['embedding'][:SIZE], jnp.float32(0), 0
    for row, chosen_L in enumerate(np.asarray(rows.masked.chosen_BxL)):
        for span in spans_of(chosen_L):
            sides = states_BxLxD[row, span.start - 1], states_BxLxD[row, span.stop]
            for place, position in enumerate(span):
                label = int(rows.tokens_BxL[row, position])
                nats, best = of_a_token(weights['boundary'], table, *sides, min(place, LONGEST_OFFSET - 1), label)
                total, right = total + nats, right + int(best == label)
    return total, right


@pytest.mark.parametrize(
    ('rate', 'model'),
    [
        (0.15, {}),  # 8 slots: states at 24 positions alone
        (0.4, {'embedding_width': 8}),  # 24 slots: all states
        (1.0, {}),  # from [CLS] to [SEP], and further than there are places
    ],
)
def test_the_term_and_its_gradients_by_a_loop_over_spans(rate, model):
    run = config(rate, **model)
    weights, rows = params(run, scale=2.0), inputs(run, **TWO_ROWS)
    (want, right), to_params = jax.value_and_grad(plain_loss, has_aux=True)(weights, run, rows)
    sums, metrics = loss(weights, run, rows)
    targets = int(rows.masked.chosen_BxL.sum())
    np.testing.assert_allclose(sums['boundary'], want, rtol=1e-5)
    assert metrics['boundary_accuracy'] == (right, targets)
    assert metrics['boundary_loss'] == (sums['boundary'], targets)
    assert objective_of(run).weights(run, rows) == {'mlm': targets, 'boundary': targets}
    found = gradients(weights, run, rows)['boundary']
    for path, wanted in by_path(to_params).items():
        scale = max(np.abs(wanted).max(), 1e-3)
        np.testing.assert_allclose(by_path(found)[path] / scale, wanted / scale, atol=2e-4, err_msg=path)


def test_every_parameter_learns_from_what_it_serves():
    run = config(0.4, embedding_width=8)
    weights, rows = params(run), inputs(run, **TWO_ROWS)
    paths = learnt(weights)
    heads = {name: {path for path in paths if path.startswith(f'{name}/')} for name in ('head', 'boundary')}
    assert len(heads['boundary']) == 10
    found = gradients(weights, run, rows)
    assert moved(found['boundary']) == paths - heads['head']
    assert moved(found['mlm']) == paths - heads['boundary']
    far = np.asarray(found['boundary']['boundary']['position']['embedding'])
    longest = max(len(span) for chosen_L in np.asarray(rows.masked.chosen_BxL) for span in spans_of(chosen_L))
    assert far[:longest].any(axis=1).all() and not far[longest:].any(), 'a row of the table a place in a span'


@pytest.mark.parametrize(('rate', 'model'), [(0.15, {}), (0.4, {'embedding_width': 8})])
def test_masks_and_the_mlm_term_are_those_of_mlm_alone(rate, model):
    run, plain = config(rate, **model), config(rate, 'mlm', **model)
    weights, rows = params(run), inputs(run, **TWO_ROWS)
    jax.tree.map(np.testing.assert_array_equal, rows, inputs(plain, **TWO_ROWS))
    encoder = objective_of(run).encoder(weights)
    assert set(encoder) == set(mlm.shapes(run.model)) - {'pooler'}
    jax.tree.map(np.testing.assert_array_equal, encoder, params(plain))
    (ours, metrics), (theirs, expected) = loss(weights, run, rows), loss(encoder, plain, rows)
    np.testing.assert_allclose(ours['mlm'], theirs['mlm'], rtol=1e-5)
    assert metrics['mlm_accuracy'] == expected['accuracy']


@jax.jit
def masked(tokens_BxL, row_ids_B, settings):
    """Two copies of each row, by any unit; and the boundaries of each token."""
    ids_BxL = document_ids(tokens_BxL, reference.WORDPIECE)
    units, joins_BxL = tuple(UNIT_NUMBERS), tokens_BxL % 5 == 0
    found = mask_rows(
        tokens_BxL, ids_BxL, row_ids_B, row_ids_B * 0, settings, reference.WORDPIECE, 64, 2, units, joins_BxL
    )
    return found, boundaries(found.chosen_BxL)


@given(
    st.integers(0, 99),
    st.sampled_from(sorted(UNIT_NUMBERS)),
    st.integers(0, 100),
    st.integers(0, 100),
    st.sampled_from([0.0, 0.05, 0.5]),
)
@hypothesis_settings(max_examples=40, deadline=None)
def test_boundaries_are_the_nearest_tokens_that_are_shown_as_they_are(seed, unit, corrupted, scored, special):
    """For targets by any unit, at any rates: neighbours first, and nothing between a target and its boundary."""
    tokens_BxL = reference.rows(seed, 4, 64, reference.WORDPIECE, special=special)
    settings = reference.settings(corrupted / 100, scored / 100, unit=unit, noise=seed)
    found, sides = jax.tree.map(np.asarray, masked(tokens_BxL, np.arange(4, dtype=np.int32), settings))
    before_BxL, after_BxL = sides
    copies_BxL = np.repeat(tokens_BxL, 2, axis=0)
    free_BxL = np.isin(copies_BxL, reference.WORDPIECE.ordinary)
    chosen_BxL, shown_BxL = found.chosen_BxL, found.inputs_BxL == copies_BxL
    assert not (chosen_BxL & ~free_BxL).any() and (chosen_BxL | shown_BxL).all()
    for row, slot in zip(*np.nonzero(found.weights_BxM), strict=True):
        target = found.positions_BxM[row, slot]
        first, end = before_BxL[row, target], after_BxL[row, target]
        assert 0 <= first < target < end < 64 and chosen_BxL[row, first + 1 : end].all()
        assert not chosen_BxL[row, [first, end]].any() and shown_BxL[row, [first, end]].all()
        assert first == max(i for i in range(target) if not chosen_BxL[row, i])
        assert end == min(i for i in range(target, 64) if not chosen_BxL[row, i])


def test_a_token_that_is_not_scored_is_part_of_its_span():
    chosen_BxL = jnp.array([[False, True, True, True, False, True, False, False]])
    assert [each[0].tolist() for each in boundaries(chosen_BxL)] == [[0, 0, 0, 0, 4, 4, 6, 7], [0, 4, 4, 4, 4, 6, 6, 7]]
    run = config(0.4)
    few = dataclasses.replace(run, masking=dataclasses.replace(run.masking, prediction_rate=0.1))
    (most, some) = (inputs(each, length=LENGTH).masked for each in (run, few))
    np.testing.assert_array_equal(most.chosen_BxL, some.chosen_BxL)
    assert some.weights_BxM.sum() < some.chosen_BxL.sum() == most.weights_BxM.sum()


def arms(micro_batches: int = 1) -> dict[str, Config]:
    """By spans and by tokens, at two rates."""
    run = config(0.3)
    changes = {'spans': dict(unit='span'), 'tokens': dict(corruption_rate=0.15)}
    return {
        name: dataclasses.replace(
            run,
            masking=dataclasses.replace(run.masking, **masking),
            model=dataclasses.replace(run.model, dropout=0.0),
            optimizer=dataclasses.replace(run.optimizer, micro_batches=micro_batches),
            stages=(Stage(length=24, batch_size=8, steps=30),),
        )
        for name, masking in changes.items()
    }


@pytest.fixture(scope='module')
def ran():
    """The program of both arms, its step, and the state and metrics after each of three updates."""
    program = Program.of(cohort(arms()), VOCABULARY)
    update, state, found = program.compile_step(0), program.init(), []
    for step in range(3):
        state, metrics = updated(program, update, state, step)
        found.append((jax.device_get(state), metrics))
    return program, update, found


def updated(program: Program, update, state, step: int):
    return update(state, program.settings(step), program.batch(step_case.rows((0,), step), 0, step))


def test_arms_share_a_program_and_tell_both_losses(ran):
    program, _, ((_, metrics), *_) = ran
    assert {replica.arm for replica in program.cohort.replicas} == {'spans', 'tokens'}
    pairs = metrics.pairs
    assert {'loss', 'mlm_loss', 'mlm_accuracy', 'boundary_loss', 'boundary_accuracy'} == set(pairs)
    losses = [pairs[name][0] / pairs[name][1] for name in ('mlm_loss', 'boundary_loss')]
    np.testing.assert_allclose(pairs['loss'][0], sum(losses), rtol=1e-5)
    np.testing.assert_allclose(losses, math.log(SIZE), rtol=0.05)  # of new models
    assert pairs['boundary_loss'][1].tolist() == metrics.targets.tolist()


def test_a_run_goes_on_from_a_checkpoint_bit_for_bit(ran, tmp_path):
    program, update, found = ran
    with Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(2, jax.device_put(found[1][0], jax.tree.map(lambda leaf: leaf.sharding, program.init())), {})
        checkpoints.wait()
        _, state, _ = checkpoints.restore(program.abstract_state())
    again, _ = updated(program, update, state, 2)
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(again), found[2][0])


def test_updates_are_the_same_in_parts(ran):
    cut, _ = trained(cohort(arms(micro_batches=4)), 2)
    for a, b in zip(jax.tree.leaves(ran[2][1][0].params), jax.tree.leaves(cut.params), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)
