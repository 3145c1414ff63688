"""Versions of the libraries that a result may depend on."""

import platform
from importlib.metadata import version

LIBRARIES = ('jax', 'jaxlib', 'flax', 'optax', 'orbax-checkpoint', 'sentencepiece', 'tokenizers', 'grain', 'numpy')


def versions() -> dict[str, str]:
    """Library -> version, Python's among them."""
    return {'python': platform.python_version(), **{library: version(library) for library in LIBRARIES}}
