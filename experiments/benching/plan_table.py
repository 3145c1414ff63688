"""What one step of BERT-base costs on a TPU, from our real train step compiled for it, beside a Flax model's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax

from experiments.planning.hlo import parse
from experiments.planning.subject import vocabulary_of
from experiments.planning.topology import slice_of
from experiments.planning.traffic import hbm_bytes
from model import mlm
from model.config import SIZES, ModelConfig
from model.kernels import splash_flops
from model.parameters import axis_sizes
from train.cohort import Cohort, Replica
from train.config import Config, MaskingConfig, OptimizerConfig, Stage
from train.flops import step_flops
from train.mesh import make_mesh
from train.program import Program
from train.rates import target_slots

TOPOLOGY = 'v5e:4x4'
VOCAB_SIZE = 32_000
BATCH_SIZES = {128: 1024, 512: 256}
"""Length -> rows a step, on all chips together."""


@dataclass(frozen=True)
class Cost:
    """Of one step, for one chip."""

    memory: float
    """Arguments and temporaries, bytes."""
    accessed: float
    """XLA's `bytes accessed`."""
    hbm: float | None
    """Bytes moved through HBM."""
    flops: float
    """XLA's count, and of kernels what they execute."""


FLAX = {128: Cost(4.10 * 2**30, 50.1e9, None, 5.63e12), 512: Cost(4.95 * 2**30, 62.2e9, None, 6.01e12)}
"""FlaxBertForMaskedLM of transformers 4.57 compiled alike: logits of all tokens, one-hot loss, all dropout at 0.1."""


@dataclass(frozen=True)
class Case:
    """A step. Layers are unrolled, since XLA counts a loop's body once; so are they at paper scale."""

    length: int
    rate: float
    attention: str
    layers: int = SIZES['base']['layers']

    @property
    def config(self) -> Config:
        """BERT-base, AdamW, bfloat16, dropout 0.1; of attention weights only where the kernel can drop them."""
        dropped = 0.1 if self.attention == 'xla' else 0.0
        size = SIZES['base'] | dict(layers=self.layers, vocab_size=VOCAB_SIZE)
        return Config(
            model=ModelConfig(
                **size, attention=self.attention, attention_dropout=dropped, dtype='bfloat16', scan_layers=False
            ),
            masking=MaskingConfig(corruption_rate=self.rate),
            optimizer=OptimizerConfig(),
            stages=(Stage(length=self.length, batch_size=BATCH_SIZES[self.length], steps=100),),
        )


def lines(lengths: tuple[int, ...], rates: tuple[float, ...]) -> Iterator[str]:
    """The table, a line for each step as it is compiled, which takes minutes.

    Raises:
      UserError: libtpu is not installed.
    """
    devices = slice_of(TOPOLOGY).devices
    yield (
        f'One step of BERT-base on {TOPOLOGY}, for each of {len(devices)} chips: jax {jax.__version__}, AdamW, '
        f'bfloat16, vocabulary {VOCAB_SIZE:,}, data parallel, dropout 0.1 (of attention with xla alone)'
    )
    yield _row('rows', 'length', 'rate', 'attention', 'GiB', 'GB', 'GB of HBM', 'TFLOP', 'of analytic')
    for length in lengths:
        flax = FLAX[length]
        yield _row(BATCH_SIZES[length], length, 'all', 'Flax', *_cells(flax, None))
        for attention in ('splash', 'xla'):
            for rate in rates:
                case = Case(length, rate, attention)
                cost = measure(case, devices)
                cells = _cells(cost, cost.flops * len(devices) / step_flops(case.config, 0), flax)
                yield _row(BATCH_SIZES[length], length, f'{100 * rate:g}%', attention, *cells)


def measure(case: Case, devices: Sequence[jax.Device]) -> Cost:
    """Compiles the step for these chips."""
    config = case.config
    (stage,) = config.stages
    mesh = make_mesh((1, -1, 1, 1), 1, (stage.batch_size,), axis_sizes(mlm.declared(config.model)), devices)
    step = Program(Cohort('plan', (Replica('plan', 0, config),)), vocabulary_of(config), mesh).lower_step(0).compile()
    memory, cost = step.memory_analysis(), step.cost_analysis()
    flops = cost['flops']
    if case.attention == 'splash':
        rows = stage.batch_size // len(devices)
        flops += splash_flops(config.model, rows, stage.length, target_slots([config.masking], stage.length))
    return Cost(
        memory=memory.argument_size_in_bytes + memory.temp_size_in_bytes,
        accessed=cost['bytes accessed'],
        hbm=hbm_bytes(parse(step.as_text())),
        flops=flops,
    )


def _cells(cost: Cost, of_analytic: float | None, beside: Cost | None = None) -> list[str]:
    def share(name: str) -> str:
        return f' ({getattr(cost, name) / getattr(beside, name):.0%})' if beside else ''

    return [
        f'{cost.memory / 2**30:.2f}{share("memory")}',
        f'{cost.accessed / 1e9:.1f}{share("accessed")}',
        '' if cost.hbm is None else f'{cost.hbm / 1e9:.1f}',
        f'{cost.flops / 1e12:.2f}',
        '' if of_analytic is None else f'{of_analytic:.2f}',
    ]


def _row(*cells) -> str:
    return '  '.join(f'{cell:>{9 if at < 4 else 12}}' for at, cell in enumerate(cells)).rstrip()
