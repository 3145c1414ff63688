"""BERT, ALBERT and ELECTRA from and to Hugging Face's files, RoBERTa from them: weights, config and tokenizer.

`convert hf:DIR --out DIR` makes a workdir of a folder of transformers, of an ELECTRA without its detector; `convert DIR
[--arm NAME] --out hf:DIR` writes a trained replica as such a folder. Post-LN with learned positions alone: transformers
has no other form. A replica is a BERT there; an ELECTRA with a detector or embeddings of another width; an ALBERT with
such embeddings where all of a layer is shared.
"""

from dataclasses import dataclass
from pathlib import Path

import tyro

from data.errors import UserError
from experiments import cli


@dataclass(frozen=True)
class ConvertFlags:
    """Flags of convert."""

    source: tyro.conf.Positional[str] = ''
    """hf:DIR, a folder with config.json, model.safetensors and a tokenizer (json, model or vocab.txt); or a workdir."""
    out: str = ''
    """The other form: a new workdir, or hf:DIR."""
    arm: str | None = None
    """Arm of the workdir. Default: the baseline."""
    seed: int | None = None
    """Seed of the workdir. Default: the first."""


def main(args: list[str]) -> None:
    """Runs the command."""
    flags = cli.parse(ConvertFlags, args, ConvertFlags(), 'python -m experiments.convert', __doc__)
    if not flags.source or not flags.out:
        raise UserError('convert needs a source and --out: one is hf:DIR, the other a workdir')
    inward = flags.source.startswith('hf:')
    if inward == flags.out.startswith('hf:'):
        raise UserError(f'{flags.source} --out {flags.out}: one of the two is hf:DIR, the other a workdir')
    folder = Path((flags.out if not inward else flags.source).removeprefix('hf:'))
    out = Path(flags.out.removeprefix('hf:'))
    if out.exists() and not out.is_dir():
        raise UserError(f'--out {flags.out} is a file: name a folder')
    if out.exists() and any(out.iterdir()):
        raise UserError(f'--out {flags.out} is not empty: name another folder')
    from experiments import exchange  # JAX starts here

    if inward:
        print(exchange.bring_in(folder, out))
    else:
        print(exchange.take_out(Path(flags.source), flags.arm, flags.seed, folder))


if __name__ == '__main__':
    cli.run(main)
