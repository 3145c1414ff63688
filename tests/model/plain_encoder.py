"""The encoder as its papers have it, in numpy and float64: one row, one head, one token at a time.

And a small model with random parameters (no bias of 0, no scale of 1) and a batch to run it on.
"""

import math

import jax
import numpy as np

from model import mlm
from model.config import ModelConfig

SMALL = dict(layers=2, width=16, heads=2, feed_forward=24, max_length=20, vocab_size=50, dropout=0.0)
SMALL |= dict(attention_dropout=0.0)
# Row 0: three documents. Row 1: one document and padding. Row 2: two documents and padding.
DOCUMENTS_BxL = np.array([[1] * 5 + [2] * 4 + [3] * 3, [1] * 7 + [0] * 5, [1] * 2 + [2] * 6 + [0] * 4], np.int32)


def random_params(config: ModelConfig, seed: int = 0) -> mlm.Params:
    noise = np.random.default_rng(seed)
    shapes = mlm.shapes(config)
    del shapes['pooler']

    def leaf(path, shape):
        spread = 0.3 if path[-1].key in ('bias', 'scale') else 0.8 * config.width**-0.5
        return (noise.normal(0, spread, shape.shape) + (path[-1].key == 'scale')).astype(np.float32)

    return jax.tree_util.tree_map_with_path(leaf, shapes)


def random_tokens(config: ModelConfig, shape: tuple[int, ...], seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, config.vocab_size, shape, dtype=np.int32)


def encode(params: mlm.Params, config: ModelConfig, tokens_L, documents_L, types_L) -> np.ndarray:
    """Hidden states [L, D] of one row; those of padding mean nothing."""
    params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
    tables = params['embeddings']
    x_LxD = tables['token']['embedding'][tokens_L] + tables['type']['embedding'][types_L]
    if config.positions == 'learned':
        x_LxD = x_LxD + tables['position']['embedding'][: len(tokens_L)]
    x_LxD = _norm(x_LxD, tables['norm'], config)
    for number in range(config.layers):
        layer = jax.tree.map(lambda leaf, number=number: leaf[number], params['layers'])
        if config.norm == 'post':
            # Vaswani et al. 2017, Section 3.1: LayerNorm(x + Sublayer(x)).
            x_LxD = _norm(
                x_LxD + _attention(x_LxD, layer['attention'], config, documents_L), layer['attention_norm'], config
            )
            x_LxD = _norm(x_LxD + _feed_forward(x_LxD, layer['feed_forward']), layer['feed_forward_norm'], config)
        else:
            # Xiong et al. 2020, Table 1: x + Sublayer(LayerNorm(x)), and one more norm at the end.
            normed_LxD = _norm(x_LxD, layer['attention_norm'], config)
            x_LxD = x_LxD + _attention(normed_LxD, layer['attention'], config, documents_L)
            x_LxD = x_LxD + _feed_forward(_norm(x_LxD, layer['feed_forward_norm'], config), layer['feed_forward'])
    return x_LxD if config.norm == 'post' else _norm(x_LxD, params['final_norm'], config)


def predict(params: mlm.Params, config: ModelConfig, hidden_LxD) -> np.ndarray:
    """Logits [L, V] without padding ids."""
    head = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params['head'])
    hidden_LxD = _norm(_gelu(hidden_LxD @ head['dense']['kernel'] + head['dense']['bias']), head['norm'], config)
    token_VxD = np.asarray(params['embeddings']['token']['embedding'], np.float64)[: config.vocab_size]
    return hidden_LxD @ token_VxD.T + head['bias'][: config.vocab_size]


def _attention(x_LxD, params, config, documents_L) -> np.ndarray:
    def project(name, token, head):
        return x_LxD[token] @ params[name]['kernel'][:, head] + params[name]['bias'][head]

    out_LxD = np.tile(params['output']['bias'], (len(x_LxD), 1))
    for i in range(len(x_LxD)):
        same = documents_L == documents_L[i] if config.attend == 'document' else documents_L > 0
        others = np.flatnonzero(same)
        for head in range(config.heads):
            query_K = project('query', i, head)
            scores = np.array([_score(query_K, project('key', j, head), i - j, config) for j in others])
            weights = np.exp(scores - scores.max())
            weights /= weights.sum()
            mixed_K = sum(weight * project('value', j, head) for weight, j in zip(weights, others, strict=True))
            out_LxD[i] += mixed_K @ params['output']['kernel'][head]
    return out_LxD


def _score(query_K, key_K, distance, config) -> float:
    if config.positions == 'learned':
        return query_K @ key_K / math.sqrt(len(query_K))
    # Su et al. 2021, Equation 12, of each pair of features: Re[q conj(k) exp(i (m - n) theta)]; theta: Section 3.2.2.
    half = len(query_K) // 2
    query_k, key_k = (a[:half] + 1j * a[half:] for a in (query_K, key_K))
    theta_k = 10_000.0 ** (-2 * np.arange(half) / (2 * half))
    return np.sum(query_k * key_k.conj() * np.exp(1j * distance * theta_k)).real / math.sqrt(len(query_K))


def _feed_forward(x_LxD, params) -> np.ndarray:
    inner_LxF = _gelu(x_LxD @ params['up']['kernel'] + params['up']['bias'])
    return inner_LxF @ params['down']['kernel'] + params['down']['bias']


def _gelu(x) -> np.ndarray:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def _norm(x_LxD, params, config) -> np.ndarray:
    mean, variance = x_LxD.mean(-1, keepdims=True), x_LxD.var(-1, keepdims=True)
    return (x_LxD - mean) / np.sqrt(variance + config.norm_epsilon) * params['scale'] + params['bias']
