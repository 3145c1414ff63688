"""Learning rates against optax's schedules, and at the switch between stages."""

import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from train.config import Config, OptimizerConfig, Stage
from train.schedule import learning_rate

PEAK = 2e-3


def run(*stages, **optimizer) -> Config:
    """A run of stages given as (steps, fields of Stage)."""
    stages = tuple(
        Stage(length=64 * (i + 1), batch_size=8, steps=steps, **fields) for i, (steps, fields) in enumerate(stages)
    )
    return Config(stages=stages, optimizer=OptimizerConfig(learning_rate=PEAK, **optimizer))


def course(config: Config) -> np.ndarray:
    return np.array([learning_rate(config, step) for step in range(config.steps)])


def warmup_then(updates, warmup, decay, peak=PEAK):
    """optax's own pieces: from peak / W to the peak in W updates, flat, to 0 after the last update."""
    pieces = [
        optax.linear_schedule(peak / warmup, peak, max(1, warmup - 1)),
        optax.constant_schedule(peak),
        optax.linear_schedule(peak, 0.0, decay),
    ]
    schedule = optax.join_schedules(pieces, [warmup, updates - decay])
    return np.array([float(schedule(step)) for step in range(updates)])


@pytest.mark.parametrize(('share', 'warmup'), [(0.1, 10), (0.06, 6), (0.5, 50), (0.015, 2)])
def test_linear(share, warmup):
    got = course(run((100, {}), warmup_share=share))
    np.testing.assert_allclose(got, warmup_then(100, warmup, 100 - warmup), rtol=1e-5)
    want = [PEAK / warmup, PEAK, PEAK, PEAK / (100 - warmup)]
    np.testing.assert_allclose(got[[0, warmup - 1, warmup, -1]], want, rtol=1e-12)


@pytest.mark.parametrize(('warmup', 'decay'), [(6, 10), (6, 50), (50, 50), (20, 1)])
def test_trapezoidal(warmup, decay):
    fields = dict(schedule='trapezoidal', warmup_share=warmup / 100, decay_share=decay / 100)
    got = course(run((100, {}), **fields))
    np.testing.assert_allclose(got, warmup_then(100, warmup, decay), rtol=1e-5)
    assert (got[warmup - 1 : 100 - decay + 1] == PEAK).all()


def test_no_warmup():
    np.testing.assert_allclose(course(run((4, {}), warmup_share=0.0)), PEAK * np.array([1, 3 / 4, 2 / 4, 1 / 4]))


def test_warmup_and_decay_that_overlap():
    """Whichever is lower, so that the course stays without jumps."""
    got = course(run((10, {}), schedule='trapezoidal', warmup_share=0.8, decay_share=0.8))
    rise, fall = np.arange(1, 11) / 8, np.arange(10, 0, -1) / 8
    np.testing.assert_allclose(got, PEAK * np.minimum(rise, fall))


@pytest.mark.parametrize('schedule', ['linear', 'trapezoidal'])
def test_the_schedule_runs_on_over_the_stage_switch(schedule):
    two = course(run((90, {}), (30, {}), schedule=schedule))
    np.testing.assert_array_equal(two, course(run((120, {}), schedule=schedule)))


def test_a_stage_that_restarts():
    second = dict(restart=True, peak_scale=0.5, warmup_share=0.2)
    got = course(run((90, {}), (30, second), (20, {}), warmup_share=0.1))
    np.testing.assert_array_equal(got[:90], course(run((90, {}), warmup_share=0.1)))
    # Its schedule spans the stage after it, which does not restart: 50 updates, 10 of them warmup.
    np.testing.assert_allclose(got[90:], warmup_then(50, 10, 40, peak=PEAK / 2), rtol=1e-5)
    np.testing.assert_allclose(got[[89, 90, 99]], [PEAK / 81, PEAK / 2 / 10, PEAK / 2], rtol=1e-12)


def test_a_first_stage_may_have_a_peak_and_warmup_of_its_own():
    got = course(run((40, dict(restart=True, peak_scale=2.0, warmup_share=0.5)), (10, dict(restart=True))))
    assert got[19] == 2 * PEAK and got[0] == 2 * PEAK / 20
    assert got[40] == PEAK  # 6% of 10 updates is 1


def test_updates_outside_the_run():
    for step in (-1, 10):
        with pytest.raises(ValueError, match='outside the run of 10'):
            learning_rate(run((10, {})), step)


stages = st.lists(
    st.tuples(
        st.integers(1, 50),
        st.just({})
        | st.fixed_dictionaries(
            {'restart': st.just(True), 'peak_scale': st.floats(0.1, 2), 'warmup_share': st.none() | st.floats(0, 1)}
        ),
    ),
    min_size=1,
    max_size=4,
)


@given(stages, st.sampled_from(['linear', 'trapezoidal']), st.floats(0, 1), st.floats(0, 1))
@hypothesis_settings(deadline=None)
def test_every_update_learns_and_none_above_the_peak(stages, schedule, warmup_share, decay_share):
    config = run(*stages, schedule=schedule, warmup_share=warmup_share, decay_share=decay_share)
    got, begin, peak = course(config), 0, PEAK
    for stage in config.stages:
        peak = PEAK * stage.peak_scale if stage.restart else peak
        part = got[begin : begin + stage.steps]
        assert (part > 0).all() and (part <= peak).all() and np.isfinite(part).all()
        begin += stage.steps
    if schedule == 'linear' and not any(stage.restart for stage in config.stages):
        assert got.max() == PEAK
