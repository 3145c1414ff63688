"""`experiments.plan`: the real train steps, compiled for TPUs that are not there."""

import json
import re

import pytest

from data.config import DataConfig
from data.errors import UserError
from experiments.plan import PlanFlags
from experiments.planning import topology
from experiments.planning.slices import chip_of
from experiments.planning.subject import vocabulary_of
from tests.integration.commands import ROOT, Place, one_line
from train.config import Config

SMOKE = ('configs/masking_rate.py', '--scale', 'smoke')
BASE = ('configs/bert_base.py', '--scale', 'paper')


def plan(*words, code: int = 0):
    """The command, in the repository."""
    return Place(ROOT).run('plan', *words, code=code)


@pytest.mark.parametrize(
    ('name', 'said'),
    [
        ('v9:4x4', '--topology v9:4x4: use CHIP:AxB or AxBxC with one of v4, v5e, v5p, v6e'),
        ('v5e', '--topology v5e: use CHIP:AxB'),
        ('v5e:4x', '--topology v5e:4x: use CHIP:AxB'),
        ('v5e:2x2x2', '--topology v5e:2x2x2: v5e slices have 2 dimensions'),
        ('v5e:16x32', '--topology v5e:16x32: 512 chips; v5e slices have 1 to 256'),
        ('v4:0x4', '--topology v4:0x4: 0 chips'),
    ],
)
def test_a_slice_that_is_none_is_refused(name, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        chip_of(name)


def test_a_mistake_is_one_line():
    ran = plan(*SMOKE, '--topology', 'v5e:2x2', 'v5e:16x32', code=2)
    assert '--topology v5e:16x32: 512 chips; v5e slices have 1 to 256' in one_line(ran.stderr)


def test_an_arm_is_planned_with_one_seed():
    with pytest.raises(ValueError, match='with --arm one seed is planned'):
        PlanFlags(config=Config(), arm='15%', seeds=3)
    with pytest.raises(ValueError, match='--topology must name a slice'):
        PlanFlags(config=Config(), topology=())


def test_a_missing_tokenizer_is_named():
    with pytest.raises(UserError, match='--data.tokenizer hf:nowhere.json: No such file'):
        vocabulary_of(Config(data=DataConfig(tokenizer='hf:nowhere.json')))


def test_without_libtpu_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(topology.importlib.util, 'find_spec', lambda name: None)
    with pytest.raises(UserError, match='libtpu.*pip install -r requirements-tpu.txt'):
        topology.slice_of('v5e:2x2')


def check(found: dict, most: float) -> None:
    """What must hold of any plan of a step that fits."""
    memory = found['memory']
    assert found['fits'] and 0 < memory['total'] < memory['capacity']
    named = ('parameters', 'optimizer', 'activations', 'temporaries', 'batch', 'code')
    assert sum(memory[name] for name in named) == memory['total'] and min(memory[name] for name in named) >= 0
    assert 0.95 < found['xla_ratio'] < most
    assert set(found['seconds']) == {'compute', 'HBM', 'interconnect'}
    assert found['step_seconds'] == max(found['seconds'].values()) == found['seconds'][found['bound']]
    assert 0 < found['mfu'] <= 1


@pytest.mark.peers
def test_smoke_compiles_for_v5e():
    ran = plan(*SMOKE, '--topology', 'v5e:2x2', '--arm', '15%', '--json')
    assert 'WARNING' not in ran.stderr and 'TPU' not in ran.stderr
    first, second = json.loads(ran.stdout)
    # A model this small has more work beside its matrix products.
    check(first, most=1.4)
    check(second, most=1.4)
    assert first['chips'] == 4 and first['mesh'] == {'arm': 1, 'data': 4, 'fsdp': 1, 'tensor': 1}
    (reduced,) = {(each['kind'], *each['axes']) for each in first['collectives']}
    assert reduced == ('all-reduce', 'data')
    # The gradient of every parameter that is used, in float32, the table of tokens' perhaps twice.
    parameters = first['memory']['parameters']
    assert 0.99 * parameters < sum(each['bytes'] for each in first['collectives']) < 2 * parameters


@pytest.mark.peers
@pytest.mark.slow
def test_base_compiles_whole():
    """BERT-base as published: it fits, and the analytic count of its operations is XLA's."""
    for found in json.loads(plan(*BASE, '--topology', 'v5e:4x4', '--json').stdout):
        check(found, most=1.1)
        assert found['chips'] == 16 and found['mesh']['data'] == 16
        assert 0.4e9 < found['memory']['parameters'] < 0.5e9
        assert {tuple(each['axes']) for each in found['collectives']} == {('data',)}


@pytest.mark.peers
@pytest.mark.slow
@pytest.mark.parametrize('name', ['v4:2x2x4', 'v5p:2x2x4', 'v6e:4x4'])
def test_the_other_chips_compile_it_small(name):
    """Whole, BERT-base takes v4's compiler twenty minutes."""
    small = ('configs/bert_base.py', '--scale', 'smoke', '--stages.0.batch-size', '16', '--stages.1.batch-size', '16')
    for found in json.loads(plan(*small, '--topology', name, '--json').stdout):
        check(found, most=1.4)
        assert found['chips'] == 16 and found['mesh']['data'] == 16


@pytest.mark.peers
@pytest.mark.slow
def test_arms_share_a_slice_and_send_each_other_nothing():
    ran = plan(*SMOKE, '--topology', 'v5e:2x2', 'v5e:2x4', '--run.mesh', '2', '-1', '1', '1')
    assert '| v5e:2x2 |' in ran.stdout and '| v5e:2x4 |' in ran.stdout
    assert 'mesh arm 2 x data 2 x fsdp 1 x tensor 1' in ran.stdout
    assert ' over data: ' in ran.stdout and ' over arm' not in ran.stdout


@pytest.mark.peers
@pytest.mark.slow
def test_nor_where_parameters_are_divided():
    ran = plan(*SMOKE, '--topology', 'v5e:2x4', '--run.mesh', '2', '2', '2', '1')
    assert ' over fsdp: ' in ran.stdout and ' over arm' not in ran.stdout


@pytest.mark.peers
@pytest.mark.slow
def test_the_largest_batch_fits_and_more_does_not():
    lean = ('--topology', 'v5e:2x2', '--arm', '15%', '--stages.0.batch-size', '65536', '--json')
    ran = plan(*SMOKE, *lean, '--fit')
    first = json.loads(ran.stdout)[0]
    assert first['largest_batch'] % 4 == 0
    said = [line for line in ran.stderr.splitlines() if line.startswith('batch of')]
    sizes = {int(line.split()[2]): line.endswith(', fits') for line in said}
    assert max(size for size, fits in sizes.items() if fits) >= first['largest_batch']
    assert any(not fits for fits in sizes.values())


@pytest.mark.peers
def test_an_installed_libtpu_prints_nothing(monkeypatch):
    monkeypatch.delenv('JAX_PLATFORMS', raising=False)
    ran = Place(ROOT).run('bench', '--only', 'loader', '--pairs', '1', '--seconds', '0.1')
    assert ran.stderr == '' and 'Loader' in ran.stdout
