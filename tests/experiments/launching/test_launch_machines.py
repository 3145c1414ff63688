"""Machines against the stand-in: made, queued for, refused, taken away and made again."""

import json
from pathlib import Path

import pytest

from data.errors import UserError


def test_a_preempted_run_goes_on_on_new_machines(cloud, capsys):
    cloud.cues({'match': 'tail -n', 'do': 'preempt'})
    cloud.job('12', type='v5litepod-16', bucket='gs://bucket', spot=1).run()
    result = Path('runs/n/runs/w/result-0').read_text()
    first = int(result.split()[1])
    assert 1 <= first < 12 and result.endswith('to 12')
    assert len(cloud.calls('create')) == 2 and all('--spot' in call for call in cloud.calls('create'))
    assert [line for line in capsys.readouterr().out.splitlines()][-(12 - first) :] == [
        f'step {step}' for step in range(first, 12)
    ]
    assert cloud.empty


def test_the_queue_is_waited_for_and_joined_again_after_a_preemption(cloud):
    cloud.cues({'match': 'tail -n', 'do': 'preempt'})
    cloud.job('9', type='v5litepod-16', bucket='gs://bucket', queued=1, spot=1).run()
    assert Path('runs/n/runs/w/result-1').read_text().endswith('to 9')
    assert len(cloud.calls('queued-resources', 'create')) == 2 and not cloud.calls('tpu-vm', 'create')
    assert 'n is WAITING_FOR_RESOURCES: waiting' in cloud.said
    assert cloud.empty


@pytest.mark.parametrize('queued', [0, 1])
def test_no_quota_is_one_line_and_no_second_try(cloud, queued):
    message = "Quota limit 'TPUV5sLitepodPerProjectPerZoneForTPUAPI' has been exceeded. Limit: 0 in zone us-west4-a."
    cloud.cues({'match': ' create ', 'times': 9, 'err': f'RESOURCE_EXHAUSTED: {message}'})
    with pytest.raises(UserError, match=r'--type v5litepod-8 is beyond the quota in --zone us-west4-a: .*Limit: 0'):
        cloud.job('1', queued=queued).run()
    assert len(cloud.calls('create')) == 1 and cloud.empty


def test_a_full_zone_is_waited_for(cloud):
    full = '{"code": 8, "message": "There is no more capacity in the zone \\"us-west4-a\\""}'
    cloud.cues({'match': ' create ', 'times': 3, 'err': full})
    cloud.job('1').run()
    assert len(cloud.calls('create')) == 4 and cloud.slept == [60, 60, 60]
    assert Path('runs/n/runs/w/result-0').exists()


@pytest.mark.parametrize('queued', [0, 1])
def test_a_create_that_was_done_though_it_failed_counts(cloud, queued):
    cloud.cues({'match': ' create ', 'do': 'lose the answer', 'err': 'Connection reset'})
    cloud.job('1', queued=queued).run()
    assert len(cloud.calls('create')) == 2 and cloud.said.count('n exists already') == 1
    assert Path('runs/n/runs/w/result-0').exists() and cloud.empty


def queue_that_failed(cloud, reason: str) -> None:
    (cloud.folder / 'queued-resources').mkdir()
    state = {'state': 'FAILED', 'failedData': {'error': {'message': reason}}}
    (cloud.folder / 'queued-resources' / 'n.json').write_text(json.dumps({'state': state}))


def test_a_queue_that_failed_for_a_full_zone_is_joined_again(cloud):
    queue_that_failed(cloud, 'There is no more capacity in the zone "us-west4-a"')
    cloud.job('1', queued=1).run()
    assert len(cloud.calls('queued-resources', 'create')) == 1 and cloud.slept[0] == 60
    assert Path('runs/n/runs/w/result-0').exists()


def test_a_queue_that_failed_for_a_quota_is_one_line_and_leaves_nothing(cloud):
    queue_that_failed(cloud, "Quota limit 'TPUV5sLitepodPerProjectPerZoneForTPUAPI' has been exceeded. Limit: 0")
    with pytest.raises(UserError, match='--type v5litepod-8 is beyond the quota'):
        cloud.job('1', queued=1).run()
    assert cloud.empty


def test_a_busy_api_is_not_a_quota(cloud):
    cloud.cues({'match': ' create ', 'err': "Quota exceeded for quota metric 'Requests' and limit 'per minute'"})
    cloud.job('1').run()
    assert len(cloud.calls('create')) == 2
