"""Where all parameters of BERT-base and -large and ALBERT-base lie; `python -m tests.train.parameter_specs` writes it.

tests/train/parameter_specs.txt is to be read when it changes: a parameter that is not cut costs memory on every device.
"""

from pathlib import Path

import jax
from jax.sharding import AbstractMesh, AxisType

from model.config import SIZES, GeneratorConfig, ModelConfig
from tests.train.step_case import VOCABULARY, cohort
from train.config import Config, MaskingConfig, OptimizerConfig
from train.mesh import AXES
from train.objectives.config import ObjectiveConfig
from train.program import Program

FILE = Path(__file__).with_suffix('.txt')
ADAMW = OptimizerConfig()
FORMS = {'learned, post-LN': {}, 'rotary, pre-LN': {'positions': 'rotary', 'norm': 'pre'}}
MLM = ObjectiveConfig()
BOUNDARY = ObjectiveConfig('mlm_sbo')
ELECTRA = ObjectiveConfig('electra', generator=GeneratorConfig(width=1 / 3, share='disentangled'))
"""With every parameter that an objective adds but the copying gate's and the span-boundary head's."""


def state(size: str, optimizer: OptimizerConfig = ADAMW, objective: ObjectiveConfig = MLM, **fields):
    """Shapes and shardings of two replicas' state, on a mesh that has two devices along each axis."""
    model = ModelConfig(**SIZES[size], vocab_size=30522, **fields)
    arms = {
        name: Config(model=model, optimizer=optimizer, objective=objective, masking=MaskingConfig(corruption_rate=rate))
        for name, rate in {'low': 0.15, 'high': 0.4}.items()
    }
    return Program(
        cohort(arms), VOCABULARY, AbstractMesh((2,) * len(AXES), AXES, axis_types=(AxisType.Auto,) * len(AXES))
    ).abstract_state()


def lines(size: str, **fields) -> list[str]:
    """A line for each leaf: name, shape, and for each axis of it the mesh axis that cuts it."""
    found = []
    for path, leaf in jax.tree_util.tree_flatten_with_path(state(size, **fields).params)[0]:
        name = jax.tree_util.keystr(path, simple=True, separator='.')
        cuts = [' and '.join(cut) if isinstance(cut, tuple) else cut or 'whole' for cut in leaf.sharding.spec]
        found.append(f'{name:<55} {" x ".join(map(str, leaf.shape)):<26} {", ".join(cuts)}')
    return found


def text() -> str:
    """The file."""
    parts = []
    for size in ('base', 'large'):
        for form, fields in FORMS.items():
            parts += [f'# {size}, {form}', *lines(size, **fields), '']
    parts += ['# base, ELECTRA', *lines('base', objective=ELECTRA), '']
    parts += ['# ALBERT-base', *lines('albert_base'), '']
    head = [line for line in lines('base', objective=BOUNDARY) if line.startswith('boundary.')]
    parts += ['# base, the span-boundary head', *head, '']
    return '\n'.join(parts)


if __name__ == '__main__':
    FILE.write_text(text())
