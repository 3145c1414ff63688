"""A model's tensors under the names of Hugging Face `transformers`, and as parameters of `model.mlm`."""

from collections.abc import Mapping

import jax
import numpy as np

from model.config import ModelConfig
from model.huggingface_forms import BERT, Form
from model.mlm import Params, shapes

_VOCABULARY = ('embeddings/token/embedding', 'head/bias')


def tensor_names(path: str, layers: int, form: Form = BERT) -> list[str]:
    """Names in `transformers` of the tensors in the leaf at a path; one a layer for a leaf of the layers."""
    module, leaf = path.rsplit('/', 1)
    root, _, rest = module.partition('/')
    name, leaves = form.modules[f'layer/{rest}' if root in ('layers', 'shared') else module]
    return [f'{name.format(i)}.{leaves[leaf]}' for i in range(layers if path.startswith('layers/') else 1)]


def to_params(tensors: Mapping[str, np.ndarray], config: ModelConfig, form: Form = BERT) -> Params:
    """Parameters, as float32 numpy arrays, from tensors by name. Rows of padding ids are 0.

    `head` and `pooler` are there where their tensors are.

    Raises:
      KeyError: a tensor is missing; its name.
      ValueError: a tensor has another shape than the config says.
    """
    tree = shapes(config)
    for part, leaf_of_it in (('head', 'head/bias'), ('pooler', 'pooler/dense/kernel')):
        if tensor_names(leaf_of_it, 1, form)[0] not in tensors:
            del tree[part]

    def leaf(path, wanted: jax.ShapeDtypeStruct) -> np.ndarray:
        path = '/'.join(entry.key for entry in path)
        stacked = path.startswith('layers/')
        shape = wanted.shape[1:] if stacked else wanted.shape
        if path in _VOCABULARY:
            shape = (config.vocab_size, *shape[1:])
        found = [_from_tensor(name, tensors[name], shape, path) for name in tensor_names(path, config.layers, form)]
        value = np.stack(found) if stacked else found[0]
        if path in _VOCABULARY:
            value = np.pad(value, [(0, wanted.shape[0] - config.vocab_size)] + [(0, 0)] * (value.ndim - 1))
        return value

    return jax.tree_util.tree_map_with_path(leaf, tree)


def to_tensors(params: Params, config: ModelConfig, form: Form = BERT) -> dict[str, np.ndarray]:
    """The inverse of `to_params`; rows of padding ids are left out."""
    tensors = {}

    def add(path, value) -> None:
        path = '/'.join(entry.key for entry in path)
        value = np.asarray(value, np.float32)
        if path in _VOCABULARY:
            value = value[: config.vocab_size]
        layers = value if path.startswith('layers/') else [value]
        for name, each in zip(tensor_names(path, config.layers, form), layers, strict=True):
            tensors[name] = np.ascontiguousarray(_to_tensor(each, path))

    jax.tree_util.tree_map_with_path(add, params)
    return tensors


def _from_tensor(name: str, tensor: np.ndarray, shape: tuple[int, ...], path: str) -> np.ndarray:
    kernel = path.endswith('/kernel')
    matrix = _matrix_shape(shape, path)
    if tensor.shape != (matrix[::-1] if kernel else matrix):
        raise ValueError(f'{name} has shape {list(tensor.shape)}, expected {list(matrix[::-1] if kernel else matrix)}')
    return np.asarray(tensor.T if kernel else tensor, np.float32).reshape(shape)


def _to_tensor(value: np.ndarray, path: str) -> np.ndarray:
    matrix = value.reshape(_matrix_shape(value.shape, path))
    return matrix.T if path.endswith('/kernel') else matrix


def _matrix_shape(shape: tuple[int, ...], path: str) -> tuple[int, ...]:
    """That of a leaf whose heads and head widths are one axis, as they are in `transformers`."""
    if '/attention/' not in path:
        return shape
    if path.endswith('/output/kernel'):
        return (shape[0] * shape[1], shape[2])
    if path.endswith('/kernel'):
        return (shape[0], shape[1] * shape[2])
    return (int(np.prod(shape)),)
