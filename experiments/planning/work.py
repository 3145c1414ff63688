"""Floating-point operations of a step: counted analytically, and by XLA as a check."""

import dataclasses
from dataclasses import dataclass

import jax

from data.vocabulary import Vocabulary
from experiments.planning.compile import Compiled, compile_step
from model.flops import encoder_flops
from model.kernels import splash_flops
from train.cohort import Cohort
from train.config import Config
from train.flops import encoders, step_flops
from train.mesh import make_mesh
from train.program import Program
from train.rates import copies, target_slots

ROWS = 8
"""Rows of the step whose operations XLA counts: all of them go with the number of rows but those of the optimizer."""


@dataclass(frozen=True)
class Check:
    """One replica's step on one chip, its layers unrolled."""

    analytic: float
    xla: float
    """XLA's count."""
    kernels: float
    """What XLA does not count: the kernels' products."""

    @property
    def ratio(self) -> float:
        """XLA's count, with the kernels', over the analytic one, which leaves out all but matrix products."""
        return (self.xla + self.kernels) / self.analytic


def slots_of(cohort: Cohort, stage: int) -> int:
    """M of the cohort's step: target slots a row that serve each of its replicas."""
    configs = [replica.config.masking for replica in cohort.replicas]
    return target_slots(configs, cohort.config.stages[stage].length)


def useful_flops(cohort: Cohort, stage: int) -> float:
    """Of a step of all replicas, each with the target slots that it needs when it runs alone."""
    return sum(step_flops(replica.config, stage) for replica in cohort.replicas)


def carried_out_flops(cohort: Cohort, stage: int) -> float:
    """Of a step of all replicas, as they run together: with the most target slots, and with layers computed again."""
    slots = slots_of(cohort, stage)
    flops = sum(step_flops(replica.config, stage, slots) for replica in cohort.replicas)
    if cohort.config.model.remat:
        flops += sum(_layers_flops(replica.config, stage, slots) for replica in cohort.replicas)
    return flops


def _layers_flops(config: Config, stage: int, slots: int) -> float:
    """Of a forward pass through the layers of all encoders of one replica."""
    length, rows = config.stages[stage].length, config.stages[stage].batch_size * copies(config.masking)
    return sum(encoder_flops(model, rows, length, positions) for model, positions in encoders(config, length, slots))


def check(cohort: Cohort, stage: int, vocabulary: Vocabulary, device: jax.Device) -> Check:
    """Has XLA count the operations of the first replica's step in a stage, at ROWS rows.

    Layers are alike but for the last, so those of many are told from the steps of two layers and of three; or of as
    many as a generator with some fraction of them has whole numbers of.
    """
    layers, objective = cohort.config.model.layers, cohort.config.objective
    share = objective.generator.layers if objective.has_generator else 1.0
    whole = [count for count in range(2, layers) if abs(count * share - round(count * share)) < 1e-6]
    if len(whole) < 2:
        return _counted(cohort, stage, vocabulary, device, layers)
    few, many = whole[:2]
    less, more = (dataclasses.astuple(_counted(cohort, stage, vocabulary, device, count)) for count in (few, many))
    return Check(*(a + (layers - few) / (many - few) * (b - a) for a, b in zip(less, more, strict=True)))


def _counted(cohort: Cohort, stage: int, vocabulary: Vocabulary, device: jax.Device, layers: int) -> Check:
    config = cohort.config
    masking = [replica.config.masking for replica in cohort.replicas]
    most = max(masking, key=lambda each: target_slots([each], config.stages[stage].length))
    config = dataclasses.replace(
        config,
        masking=most,
        model=dataclasses.replace(config.model, layers=layers, scan_layers=False, remat=False),
        optimizer=dataclasses.replace(config.optimizer, micro_batches=1),
        stages=(dataclasses.replace(config.stages[stage], batch_size=ROWS),),
    )
    alone = Cohort('check', (dataclasses.replace(cohort.replicas[0], config=config),))
    mesh = make_mesh((1, 1, 1, 1), 1, devices=[device])
    compiled = compile_step(Program(alone, vocabulary, mesh), 0)
    assert isinstance(compiled, Compiled), compiled.message  # a few rows of a few layers
    kernels = 0.0
    if config.model.attention == 'splash':
        length, rows = config.stages[0].length, ROWS * copies(most)
        run = encoders(config, length, target_slots([most], length))
        kernels = sum(splash_flops(model, rows, length, positions) for model, positions in run)
    return Check(step_flops(config, 0), compiled.xla['flops'], kernels)
