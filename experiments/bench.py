"""How fast it is: step and fine-tuning beside PyTorch's, an ablation beside its replicas alone, loader,
preparation beside SentencePiece, start.

With --plan instead what a step costs on TPU, which takes no TPU.
"""

from dataclasses import dataclass
from typing import Literal

import tyro

from experiments import cli
from experiments.devices import cores, prepare
from model.config import SIZES
from train.config import MaskingConfig, RunConfig, Stage

Part = Literal['step', 'ablation', 'loader', 'preparation', 'startup', 'finetune']


@dataclass(frozen=True)
class BenchFlags:
    """Flags of bench."""

    plan: tyro.conf.UseCounterAction[int] = 0
    """Instead of timing: what a step of BERT-base costs on v5e:4x4, compiled here for these lengths and rates."""
    only: tuple[Part, ...] = ('step', 'ablation', 'loader', 'preparation', 'startup')
    """Parts to time; finetune needs data_dir."""
    sizes: tuple[str, ...] = ('tiny', 'mini')
    """Sizes of BERT (model/config.py)."""
    lengths: tuple[int, ...] = (128, 512)
    """Tokens a row; 4,096 tokens a step at each."""
    rates: tuple[float, ...] = (0.15, 0.40)
    """Masking rates."""
    vocab_size: int = 0
    """Ids of the models compared with PyTorch's (0: those of the embedded corpus's tokenizer)."""
    data_dir: str = ''
    """finetune: folder of SST-2."""
    tokenizer: str = ''
    """finetune: hf:PATH of a tokenizer.json (empty: that of the embedded corpus)."""
    pairs: int = 5
    """Turns of each side."""
    seconds: float = 1.0
    """About how long a turn is."""

    def __post_init__(self):
        for name in ('pairs', 'seconds'):
            if not getattr(self, name) > 0:
                raise ValueError(f'--{name} {getattr(self, name)}: use a number above 0')
        if 'finetune' in self.only and not self.data_dir:
            raise ValueError('--only finetune: give --data_dir, the folder of SST-2')
        if unknown := [size for size in self.sizes if size not in SIZES]:
            raise ValueError(f'--sizes {unknown[0]}: use {", ".join(SIZES)}')
        for rate in self.rates:
            MaskingConfig(corruption_rate=rate)
        for length in self.lengths:
            Stage(length=length, batch_size=1, steps=1)
            if self.plan and length not in (128, 512):
                raise ValueError(f'--lengths {length}: --plan knows 128 and 512')


def main(args: list[str]) -> None:
    """Runs the command."""
    flags = cli.parse(BenchFlags, args, BenchFlags(), 'python -m experiments.bench', __doc__)
    prepare(RunConfig(), replicas=cores())
    from experiments.benching import plan_table, report  # JAX starts here, after its devices are known

    for line in plan_table.lines(flags.lengths, flags.rates) if flags.plan else report.lines(flags):
        print(line, flush=True)


if __name__ == '__main__':
    cli.run(main)
