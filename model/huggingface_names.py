"""BERT's tensors under the names of Hugging Face `transformers`, and as parameters of `model.mlm`."""

from collections.abc import Mapping

import jax
import numpy as np

from model.config import ModelConfig
from model.mlm import Params, shapes

_NORM = {'scale': 'weight', 'bias': 'bias'}
_LINEAR = {'kernel': 'weight', 'bias': 'bias'}
_MODULES = {
    'embeddings/token': ('bert.embeddings.word_embeddings', {'embedding': 'weight'}),
    'embeddings/position': ('bert.embeddings.position_embeddings', {'embedding': 'weight'}),
    'embeddings/type': ('bert.embeddings.token_type_embeddings', {'embedding': 'weight'}),
    'embeddings/norm': ('bert.embeddings.LayerNorm', _NORM),
    'embeddings/projection': ('bert.embeddings_project', _LINEAR),  # ELECTRA's
    'layers/attention/query': ('bert.encoder.layer.{}.attention.self.query', _LINEAR),
    'layers/attention/key': ('bert.encoder.layer.{}.attention.self.key', _LINEAR),
    'layers/attention/value': ('bert.encoder.layer.{}.attention.self.value', _LINEAR),
    'layers/attention/output': ('bert.encoder.layer.{}.attention.output.dense', _LINEAR),
    'layers/attention_norm': ('bert.encoder.layer.{}.attention.output.LayerNorm', _NORM),
    'layers/feed_forward/up': ('bert.encoder.layer.{}.intermediate.dense', _LINEAR),
    'layers/feed_forward/down': ('bert.encoder.layer.{}.output.dense', _LINEAR),
    'layers/feed_forward_norm': ('bert.encoder.layer.{}.output.LayerNorm', _NORM),
    'head/dense': ('cls.predictions.transform.dense', _LINEAR),
    'head/norm': ('cls.predictions.transform.LayerNorm', _NORM),
    'head': ('cls.predictions', {'bias': 'bias'}),
    'pooler/dense': ('bert.pooler.dense', _LINEAR),
}
_VOCABULARY = ('embeddings/token/embedding', 'head/bias')


def tensor_names(path: str, layers: int) -> list[str]:
    """Names in `transformers` of the tensors in the leaf at a path; one a layer for a leaf of the layers."""
    module, leaf = path.rsplit('/', 1)
    name, leaves = _MODULES[module]
    return [f'{name.format(i)}.{leaves[leaf]}' for i in range(layers if path.startswith('layers/') else 1)]


def to_params(tensors: Mapping[str, np.ndarray], config: ModelConfig) -> Params:
    """Parameters, as float32 numpy arrays, from tensors by name. Rows of padding ids are 0.

    `head` and `pooler` are there where their tensors are.

    Raises:
      KeyError: a tensor is missing; its name.
      ValueError: a tensor has another shape than the config says.
    """
    tree = shapes(config)
    if 'cls.predictions.bias' not in tensors:
        del tree['head']
    if 'bert.pooler.dense.weight' not in tensors:
        del tree['pooler']

    def leaf(path, wanted: jax.ShapeDtypeStruct) -> np.ndarray:
        path = '/'.join(entry.key for entry in path)
        stacked = path.startswith('layers/')
        shape = wanted.shape[1:] if stacked else wanted.shape
        if path in _VOCABULARY:
            shape = (config.vocab_size, *shape[1:])
        found = [_from_tensor(name, tensors[name], shape, path) for name in tensor_names(path, config.layers)]
        value = np.stack(found) if stacked else found[0]
        if path in _VOCABULARY:
            value = np.pad(value, [(0, wanted.shape[0] - config.vocab_size)] + [(0, 0)] * (value.ndim - 1))
        return value

    return jax.tree_util.tree_map_with_path(leaf, tree)


def to_tensors(params: Params, config: ModelConfig) -> dict[str, np.ndarray]:
    """The inverse of `to_params`; rows of padding ids are left out."""
    tensors = {}

    def add(path, value) -> None:
        path = '/'.join(entry.key for entry in path)
        value = np.asarray(value, np.float32)
        if path in _VOCABULARY:
            value = value[: config.vocab_size]
        layers = value if path.startswith('layers/') else [value]
        for name, each in zip(tensor_names(path, config.layers), layers, strict=True):
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
