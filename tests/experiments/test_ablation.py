"""An ablation's arms and their configs: what is changed, what wins, and what is refused."""

import dataclasses
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.ablation import Ablation, Arm
from experiments.config_paths import changed, differences, lookup
from train.config import Config, EvaluationConfig, Stage

BASE = Config()
ARMS = (Arm('15%'), Arm('40%', {'masking.corruption_rate': 0.4}))

FIELDS = {
    'masking.corruption_rate': st.floats(0.01, 1),
    'masking.noise': st.integers(0, 9),
    'optimizer.learning_rate': st.floats(0, 1),
    'model.dropout': st.floats(0, 0.9),
    'stages.0.steps': st.integers(1, 10**6),
    'stages.1.batch_size': st.integers(1, 64),
    'run.mesh': st.tuples(*[st.integers(1, 4)] * 4),
    'evaluation.rates': st.lists(st.floats(0.01, 1), min_size=1, max_size=3, unique=True).map(tuple),
}
CHANGES = st.fixed_dictionaries({}, optional=FIELDS)


def ablation(**given_fields) -> Ablation:
    fields = {'name': 'n', 'claim': 'c', 'base': BASE, 'arms': ARMS, 'baseline': '15%', **given_fields}
    return Ablation(**fields)


@given(CHANGES)
@settings(deadline=None)
def test_changed_changes_the_fields_named_and_no_other(changes):
    config = changed(BASE, changes)
    assert all(lookup(config, path) == value for path, value in changes.items())
    found = differences(BASE, config)
    real = {path: value for path, value in changes.items() if lookup(BASE, path) != value}
    assert found == {path: (lookup(BASE, path), value) for path, value in real.items()}
    assert changed(config, {path: lookup(BASE, path) for path in changes}) == BASE


@given(CHANGES, CHANGES)
@settings(deadline=None)
def test_differences_turn_one_config_into_the_other(first, second):
    a, b = changed(BASE, first), changed(BASE, second)
    found = differences(a, b)
    assert changed(a, {path: there for path, (_, there) in found.items()}) == b
    assert differences(b, a) == {path: (there, here) for path, (here, there) in found.items()}
    assert bool(found) == (a != b)


def test_changed_validates_once_all_is_in_place():
    together = changed(BASE, {'masking.rule': (0.5, 0.25, 0.25), 'stages': (Stage(64, 16, 7),)})
    assert together.masking.rule == (0.5, 0.25, 0.25) and together.steps == 7
    both = {'stages.0.restart': True, 'stages.0.peak_scale': 0.5}  # the second alone is refused
    for order in (both, dict(reversed(both.items()))):
        assert changed(BASE, order).stages[0].peak_scale == 0.5
    with pytest.raises(ValueError, match='peak_scale'):
        changed(BASE, {'stages.0.peak_scale': 0.5})


@pytest.mark.parametrize(
    ('path', 'value'),
    [
        ('masking.corruption_rate', 0.15),
        ('stages.0.length', 64),
        ('stages.1.steps', 20),
        ('stages', BASE.stages),
        ('masking', BASE.masking),
    ],
)
def test_lookup_finds_fields_and_items(path, value):
    assert lookup(BASE, path) == value


@pytest.mark.parametrize(
    'path',
    ['masking.rate', 'nothing', 'stages.2.steps', 'stages.-1.steps', 'stages.steps', 'masking.noise.x', 'steps', ''],
)
def test_a_field_that_does_not_exist_is_named(path):
    for call in (lambda: lookup(BASE, path), lambda: changed(BASE, {path: 1})):
        with pytest.raises(ValueError, match=f'no field {re.escape(repr(path))}'):
            call()


def test_differences_of_other_lengths_are_one_field():
    one = dataclasses.replace(BASE, stages=BASE.stages[:1])
    assert differences(BASE, one) == {'stages': (BASE.stages, one.stages)}
    assert differences(BASE, BASE) == {}


def test_overrides_win_over_arms_and_arms_over_the_base():
    base = changed(BASE, {'masking.noise': 3, 'optimizer.learning_rate': 0.5})
    arms = (Arm('a'), Arm('b', {'masking.noise': 4, 'model.dropout': 0.25, 'masking.corruption_rate': 0.3}))
    made = ablation(base=base, arms=arms, baseline='a', overrides={'masking.noise': 7, 'stages.0.steps': 5})
    for name, dropout, rate in (('a', BASE.model.dropout, 0.15), ('b', 0.25, 0.3)):
        config = made.config(name)
        assert (config.masking.noise, config.stages[0].steps) == (7, 5)
        assert (config.model.dropout, config.masking.corruption_rate) == (dropout, rate)
        assert config.optimizer.learning_rate == 0.5


def test_twins_are_refused_and_what_made_them_is_named():
    with pytest.raises(ValueError, match="arms '15%' and 'again' are the same run: their changes leave no difference"):
        ablation(arms=(*ARMS, Arm('again', {'masking.corruption_rate': 0.15})))
    with pytest.raises(ValueError, match="'15%' and '40%' are the same run: --masking.corruption_rate leave"):
        ablation(overrides={'masking.corruption_rate': 0.2})
    assert ablation(overrides={'masking.noise': 1}).config('40%').masking.noise == 1


@pytest.mark.parametrize(
    ('fields', 'words'),
    [
        ({'arms': ()}, 'give at least one'),
        ({'arms': (Arm('15%'), Arm('15%', {'masking.noise': 1}))}, 'each with a name of its own'),
        ({'baseline': '20%'}, "baseline '20%' is not an arm; the arms are 15%, 40%"),
        ({'seeds': 0}, 'seeds is 0: use 1 or more'),
        *(({'name': name}, f'name {name!r}: a folder is called by it') for name in ('', '..', 'a/b')),
        ({'overrides': {'masking.corruption_rate': 1e-4}}, 'at a rate of 0.0001 no token of a row of'),
        ({'arms': (*ARMS, Arm('x', {'masking.rate': 1}))}, "no field 'masking.rate'"),
        ({'overrides': {'masking.corruption_rate': 2.0}}, 'a rate lies between 0 and 1'),
        ({'overrides': {'objective.temperature': 2.0}}, '--objective.temperature: no arm reads it; their objective'),
        ({'overrides': {'objective.generator.width': 0.5}}, '--objective.generator.width: no arm reads it'),
        ({'overrides': {'objective.detect': 'chosen'}}, '--objective.detect: no arm reads it'),
        ({'overrides': {'objective.sampler': 'uniform'}}, '--objective.sampler: no arm reads it'),
        (
            {'primary': 'probe', 'overrides': {'evaluation.probe_paragraphs': 0}},
            'evaluation.probe_paragraphs is 0, but probe is the primary measure',
        ),
    ],
)
def test_what_makes_no_ablation_is_refused_in_one_line(fields, words):
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        ablation(**fields)
    assert '\n' not in str(error.value)


def test_an_arm_alone_is_compared_by_nothing():
    assert ablation(arms=ARMS[:1], primary='probe', overrides={'evaluation.probe_paragraphs': 0})


def test_a_field_that_one_arm_reads_is_taken():
    arms = (*ARMS, Arm('replaced', {'objective.name': 'replace_mlm'}))
    for path, value in (('temperature', 2.0), ('generator.width', 0.5), ('sampler', 'uniform')):
        taken = ablation(arms=arms, overrides={f'objective.{path}': value})
        assert lookup(taken.config('replaced'), f'objective.{path}') == value
    # A run of equal FLOPs reads what the run that it is equal to reads.
    arms = (ARMS[0], Arm('equal', {}, at_flops_of={'objective.name': 'electra'}))
    assert ablation(arms=arms, overrides={'objective.generator.width': 0.5})


def test_an_arm_that_is_not_there_is_named():
    with pytest.raises(ValueError, match="no arm '20%'; the arms are 15%, 40%"):
        ablation().config('20%')


@pytest.mark.parametrize('primary', ['loss', 'accuracy'])
def test_a_primary_rate_that_is_never_evaluated_is_refused(primary):
    words = "primary_rate 0.2 is none of evaluation.rates (0.15, 0.3, 0.4): arm '15%' would have no " + primary
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        ablation(primary=primary, primary_rate=0.2)
    assert '\n' not in str(error.value)
    assert ablation(primary=primary, primary_rate=0.4).primary_rate == 0.4


def test_the_rates_that_count_are_those_of_the_arms_and_the_command_line():
    with pytest.raises(ValueError, match=re.escape('primary_rate 0.15 is none of evaluation.rates (0.3,)')):
        ablation(overrides={'evaluation.rates': (0.3,)})
    with pytest.raises(ValueError, match="arm '40%' changes evaluation.rates"):
        ablation(arms=(ARMS[0], Arm('40%', {'evaluation.rates': (0.4,)})))
    base = dataclasses.replace(BASE, evaluation=EvaluationConfig(rates=(0.2,)))
    assert ablation(base=base, primary_rate=0.2).primary_rate == 0.2


def test_a_primary_metric_without_rates_needs_none():
    assert ablation(primary='probe', primary_rate=0.2).primary == 'probe'


@pytest.mark.parametrize(
    ('changes', 'named'),
    [
        ({'evaluation.rows': 7}, 'evaluation.rows'),
        ({'stages.1.length': 96}, 'the last stage'),
        ({'data.corpus': 'files:x'}, 'data.corpus'),
        ({'run.log_every': 7}, 'run.log_every'),
    ],
)
def test_arms_that_would_be_measured_on_other_text_are_refused(changes, named):
    with pytest.raises(ValueError, match=f"arm 'x' changes {named}"):
        ablation(arms=(ARMS[0], Arm('x', changes)))


def test_a_primary_that_needs_an_mlm_head_needs_one_in_every_arm():
    arms = (Arm('BERT'), Arm('ELECTRA', {'objective.name': 'electra'}))
    with pytest.raises(ValueError, match="primary 'loss' needs an MLM head, and the objective of arm 'ELECTRA' trains"):
        Ablation('x', 'y', Config(), arms, 'BERT')
    assert Ablation('x', 'y', Config(), arms, 'BERT', primary='probe').primary == 'probe'
    with pytest.raises(
        ValueError, match="primary 'sop_accuracy' needs a head for pairs, and the objective of arm 'BERT'"
    ):
        Ablation('x', 'y', Config(), arms, 'BERT', primary='sop_accuracy')
    judging = tuple(
        Arm(name, {'objective.name': name, 'objective.rows': 'segment_pairs'}) for name in ('mlm_nsp', 'mlm_sop')
    )
    assert Ablation('x', 'y', Config(), judging, 'mlm_nsp', primary='sop_accuracy').primary == 'sop_accuracy'
