"""From `CONFIG [--scale S] [--section.field VALUE ...]` to an ablation."""

import dataclasses
import runpy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from configs.scales import SCALES, Scale
from data.errors import UserError
from experiments import cli
from experiments.ablation import Ablation
from experiments.config_paths import lookup
from train.config import Config


@dataclass(frozen=True)
class RunFlags:
    """Flags that ablate and pretrain share. CONFIG comes first: a file of configs/."""

    config: Annotated[Config, cli.Flat]
    scale: Scale = 'cpu'
    """How big the run is: smoke (a minute), cpu (minutes on 2 cores), overnight, or paper (a pod)."""
    workdir: Path | None = None
    """Where everything goes; the same command again goes on there. Default: a folder of runs/ named by the config,
    and by the scale if it is not cpu."""


def default_workdir(name: str, scale: str) -> Path:
    """The folder of runs/ where a run goes that names none: each scale has its own."""
    return Path('runs') / (name if scale == 'cpu' else f'{name}-{scale}')


def load(path: str, scale: str) -> Ablation:
    """The ablation that a config file states at a scale.

    Raises:
      UserError: no such file, an error in it, or an unknown scale.
    """
    if scale not in SCALES:
        raise UserError(f'--scale {scale} is not one of {", ".join(SCALES)}')
    if not Path(path).is_file():
        there = sorted(
            str(file) for file in Path('configs').glob('*.py') if 'def config(' in file.read_text(errors='replace')
        )
        raise UserError(f'no config file {path}: name one of {", ".join(there) or "those in configs/"}')
    try:
        config = runpy.run_path(path).get('config')
        ablation = config(scale) if callable(config) else None
    except SyntaxError as error:
        raise UserError(f'{error.filename or path}, line {error.lineno}: {error.msg}') from None
    except ValueError as error:
        raise UserError(f'{path}: {error}') from None
    except (Exception, SystemExit) as error:  # whatever a user's own file raises, it is named
        raise UserError(f'{path}: {type(error).__name__}: {error}') from None
    if not isinstance(ablation, Ablation):
        raise UserError(f'{path}: give it a function config(scale) that returns an Ablation')
    return ablation


def read_command(
    args: list[str],
    flags: type,
    prog: str,
    description: str,
    narrow: Callable[[Ablation, Any], Ablation] = lambda ablation, _: ablation,
) -> tuple[Ablation, Any]:
    """Reads a command line that begins with a config file.

    Args:
      narrow: leaves in the ablation what the flags ask for, before the command line's fields come in.

    Returns:
      The ablation with the command line's fields in place, and the flags.
    """
    scale = flags.__dataclass_fields__['scale'].default
    for flag, value in zip(args, [*args[1:], ''], strict=False):
        # Read before tyro reads it again: the scale decides which fields' defaults tyro shows and starts from.
        name, equals, inside = flag.partition('=')
        if name == '--scale':
            scale = inside if equals else value
    rest = list(args)
    config_path = rest.pop(0) if rest and not rest[0].startswith('-') else None
    if config_path is None:
        if not {'--help', '-h'} & set(args):
            raise UserError(f'{prog} needs a config file first, such as configs/masking_rate.py')
        cli.parse(flags, ['--help'], flags(Config()), prog, description)
    ablation = load(config_path, scale)
    values = cli.parse(flags, rest, flags(ablation.base), f'{prog} CONFIG', description)
    changes = {}
    for path in cli.given_fields(rest):
        changes[path] = lookup(values.config, path)
    try:
        ablation = dataclasses.replace(narrow(ablation, values), overrides=changes)
    except ValueError as error:
        raise UserError(str(error)) from None
    return ablation, values
