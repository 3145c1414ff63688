"""The plan of a stage on a slice: what its step takes, how long that is at the chip's peaks, and what follows."""

from dataclasses import dataclass

from experiments.planning.collectives import Collective, collectives
from experiments.planning.compile import Compiled, TooLarge, compile_step
from experiments.planning.memory import Memory, memory_of
from experiments.planning.topology import Slice
from experiments.planning.traffic import hbm_bytes
from experiments.planning.work import Check, carried_out_flops, useful_flops
from train.program import Program


@dataclass(frozen=True)
class StagePlan:
    """A stage of a cohort on a slice. Bytes and seconds are of one chip and one step."""

    topology: str
    chips: int
    mesh: dict[str, int]
    cohort: str
    replicas: int
    stage: int
    length: int
    batch_size: int
    steps: int
    memory: Memory
    useful_flops: float
    """Of all chips: each replica's with the target slots of its own rate."""
    carried_out_flops: float
    """Of all chips: as the replicas run together."""
    hbm_bytes: int | None
    """None, as all that the compiled program says, where the step does not fit."""
    xla_bytes: float | None
    """XLA's own count, 'bytes accessed'."""
    collectives: tuple[Collective, ...]
    seconds: dict[str, float]
    """At the chip's peak: for compute, HBM and interconnect."""
    peak: float
    """Operations a second of all chips."""
    check: Check | None = None
    largest_batch: int | None = None
    """The largest batch found to fit, where it was asked for."""

    @property
    def bound(self) -> str:
        """What takes longest."""
        return max(self.seconds, key=self.seconds.get)

    @property
    def step_seconds(self) -> float:
        """The least that a step can take, all else hidden behind what takes longest."""
        return max(self.seconds.values())

    @property
    def mfu(self) -> float:
        """The most that model FLOPs utilisation can be."""
        return self.useful_flops / self.step_seconds / self.peak

    @property
    def tokens_per_second(self) -> float:
        """The most that it can be, of all replicas together."""
        return self.replicas * self.batch_size * self.length / self.step_seconds

    @property
    def chip_hours(self) -> float:
        """The least that the whole stage can take. Chips of the slice that have no work are paid for, too."""
        return self.steps * self.step_seconds * self.chips / 3600


def plan_stage(program: Program, stage: int, where: Slice, check: Check | None = None) -> StagePlan:
    """Compiles a stage's step for a slice and reads off what it takes."""
    compiled = compile_step(program, stage)
    cohort, mesh = program.cohort, program.mesh
    chip = where.chip
    carried_out = carried_out_flops(cohort, stage)
    seconds = {'compute': carried_out / mesh.devices.size / chip.flops}
    traffic, sent = None, ()
    if isinstance(compiled, Compiled):
        traffic, sent = hbm_bytes(compiled.module), collectives(compiled.module, mesh, chip)
        seconds |= {'HBM': traffic / chip.hbm_rate, 'interconnect': sum(each.seconds for each in sent)}
    shape = cohort.config.stages[stage]
    return StagePlan(
        topology=where.name,
        chips=len(where.devices),
        mesh=dict(mesh.shape),
        cohort=cohort.name,
        replicas=len(cohort.replicas),
        stage=stage,
        length=shape.length,
        batch_size=shape.batch_size,
        steps=shape.steps,
        memory=memory_of(program, compiled, int(chip.hbm)),
        useful_flops=useful_flops(cohort, stage),
        carried_out_flops=carried_out,
        hbm_bytes=traffic,
        xla_bytes=None if isinstance(compiled, TooLarge) else compiled.xla['bytes accessed'],
        collectives=sent,
        seconds=seconds,
        peak=len(where.devices) * chip.flops,
        check=check,
    )
