"""config.json: taken up again with what may differ, and refused where someone has cut into it."""

import dataclasses
import json

import pytest

from data.errors import UserError
from experiments.config_paths import changed
from experiments.workdir import Workdir, read_workdir
from train.cohort import CONTROL, Replica
from train.config import Config, MaskingConfig

CONFIGS = {
    '15%': Config(),
    '30%': Config(masking=MaskingConfig(corruption_rate=0.3)),
    '40%': Config(masking=MaskingConfig(corruption_rate=0.4)),
}


@pytest.fixture
def workdir(tmp_path):
    """Three replicas and the control that fills two slots."""
    ablation = {'baseline': '15%', 'arms': {arm: {} for arm in CONFIGS}}
    new = Workdir(tmp_path, {'ablation': ablation, 'scale': 'cpu', 'grid': None, 'configs': {}, 'cohorts': []})
    new.add(CONFIGS)
    new.plan([Replica(arm, 0, config) for arm, config in CONFIGS.items()], slots=2)
    new.save()
    return new


@pytest.mark.parametrize(
    'change',
    [{'optimizer.micro_batches': 2}, {'evaluation.batch_size': 8}, {'data.store': 'elsewhere'}, {'run.log_every': 7}],
)
def test_what_may_differ_is_taken_over_by_the_controls_too(workdir, change):
    again = read_workdir(workdir.path)
    again.add({arm: changed(config, change) for arm, config in CONFIGS.items()})
    (before,), (after,) = workdir.cohorts, again.cohorts
    assert after.replicas[-1].arm == f'15%{CONTROL}'
    assert after.replicas == tuple(dataclasses.replace(r, config=changed(r.config, change)) for r in before.replicas)


@pytest.mark.parametrize(
    'cut',
    [
        lambda record: record.pop('grid'),
        lambda record: record['configs'].pop('30%'),
        lambda record: record['configs'].update({'30%': None}),
        lambda record: record.update(configs=[]),
        lambda record: record.update(ablation=[]),
        lambda record: record['ablation'].pop('baseline'),
        lambda record: record.update(cohorts=[{}]),
        lambda record: record['cohorts'][0].update(replicas=[['30%']]),
    ],
)
def test_a_config_json_that_was_cut_into_is_named(workdir, cut):
    cut(workdir.record)
    (workdir.path / 'config.json').write_text(json.dumps(workdir.record))
    with pytest.raises(UserError, match='config.json was changed by hand'):
        read_workdir(workdir.path)
