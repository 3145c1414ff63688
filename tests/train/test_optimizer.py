"""Updates against optax on unstacked layers and against the formulas in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from model import mlm
from model.config import ModelConfig
from train.config import OptimizerConfig
from train.optimizer import decayed, transformation

LAYERS = 3


def names(tree) -> dict:
    """Path of each leaf, such as 'layers/attention/query/kernel' -> leaf."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {'/'.join(part.key for part in path): leaf for path, leaf in leaves}


def draw(seed: int, scale: float = 1.0) -> dict:
    """Parameters (or gradients) of a small model: every kind of leaf, layers stacked."""
    shapes = {
        'embeddings': {'token': {'embedding': (11, 4)}, 'norm': {'scale': (4,), 'bias': (4,)}},
        'layers': {
            'query': {'kernel': (LAYERS, 4, 2, 2), 'bias': (LAYERS, 2, 2)},
            'norm': {'scale': (LAYERS, 4), 'bias': (LAYERS, 4)},
        },
        'head': {'dense': {'kernel': (4, 4), 'bias': (4,)}, 'bias': (11,)},
    }
    random = np.random.default_rng(seed)
    # Layers of different size, so that one trust ratio for all would show.
    size = scale * 10.0 ** np.arange(LAYERS)

    def leaf(path, shape):
        values = random.normal(size=shape)
        return np.float32(values * size.reshape((-1,) + (1,) * (len(shape) - 1)) if path[0].key == 'layers' else values)

    return jax.tree_util.tree_map_with_path(leaf, shapes, is_leaf=lambda node: isinstance(node, tuple))


def unstacked(tree: dict) -> dict:
    """The same with a subtree for each layer."""
    layers = {f'layer_{i}': jax.tree.map(lambda leaf: leaf[i], tree['layers']) for i in range(LAYERS)}  # noqa: B023
    return {**{name: part for name, part in tree.items() if name != 'layers'}, **layers}


def run(optimizers, params, steps=5, scale=1.0):
    """Parameters after updates by gradients of differing size; one transformation per step."""
    state, compiled = optimizers[0].init(params), [jax.jit(optimizer.update) for optimizer in optimizers]
    for step in range(steps):
        grads = draw(100 + step, scale)
        grads = grads if 'layers' in params else unstacked(grads)
        updates, state = compiled[min(step, len(optimizers) - 1)](grads, state, params)
        params = jax.tree.map(np.add, params, updates)
    return params


def assert_close(got, want, rtol=1e-5):
    got, want = names(got), names(want)
    assert list(got) == list(want)
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=rtol, atol=1e-6, err_msg=name)


def by_kind(optimizer, undecayed_optimizer):
    """One of optax's for kernels and embeddings, one for the rest: by the leaf's name, decided here."""

    def kinds(params):
        return jax.tree_util.tree_map_with_path(lambda path, _: path[-1].key, params)

    decayed, plain = optimizer, undecayed_optimizer
    return optax.partition({'kernel': decayed, 'embedding': decayed, 'bias': plain, 'scale': plain}, kinds)


def test_adamw_is_optax_adamw():
    config = OptimizerConfig(name='adamw', beta1=0.8, beta2=0.95, epsilon=1e-3)
    got = run([transformation(config, 0.01, 0.1)], draw(0))
    options = dict(b1=0.8, b2=0.95, eps=1e-3)
    want = run([by_kind(optax.adamw(0.01, weight_decay=0.1, **options), optax.adam(0.01, **options))], draw(0))
    assert_close(got, want)


@pytest.mark.parametrize('scale', [1.0, 1e-3])
def test_lamb_has_a_ratio_for_each_layer(scale):
    """As optax.lamb on layers that are not stacked; biases and norms as plain Adam, without decay or ratio."""
    config = OptimizerConfig(name='lamb', beta1=0.9, beta2=0.999, epsilon=1e-6)
    got = run([transformation(config, 0.01, 0.1)], draw(0), scale=scale)
    options = dict(b1=0.9, b2=0.999, eps=1e-6)
    lamb = by_kind(optax.lamb(0.01, weight_decay=0.1, **options), optax.adam(0.01, **options))
    assert_close(unstacked(got), run([lamb], unstacked(draw(0)), scale=scale))


def test_without_bias_correction_is_berts_form():
    """google-research/bert, optimization.py: no step count anywhere."""
    config = OptimizerConfig(bias_correction=False, beta1=0.9, beta2=0.999, epsilon=1e-6)
    got = names(run([transformation(config, 0.01, 0.1)], draw(0)))
    for name, param in names(draw(0)).items():
        m, v, param = np.zeros_like(param, np.float64), np.zeros_like(param, np.float64), np.float64(param)
        for step in range(5):
            grad = np.float64(names(draw(100 + step))[name])
            m = 0.9 * m + (1.0 - 0.9) * grad
            v = 0.999 * v + (1.0 - 0.999) * np.square(grad)
            update = m / (np.sqrt(v) + 1e-6)
            if name.endswith(('kernel', 'embedding')):
                update += 0.1 * param
            param = param - 0.01 * update
        np.testing.assert_allclose(got[name], param, rtol=1e-4, atol=1e-6, err_msg=name)


def test_the_first_update_shows_the_form():
    """Corrected: the gradient's sign. Not corrected: 0.1 / sqrt(0.001) times that."""
    params, grads = {'bias': jnp.zeros(2)}, {'bias': jnp.array([3.0, -0.5])}
    for correction, size in ((True, 1.0), (False, 0.1 / np.sqrt(0.001))):
        config = OptimizerConfig(bias_correction=correction, beta2=0.999, epsilon=1e-12)
        optimizer = transformation(config, 1.0, 0.1)
        updates, _ = optimizer.update(grads, optimizer.init(params), params)
        np.testing.assert_allclose(updates['bias'], [-size, size], rtol=1e-4)


@pytest.mark.parametrize('name', ['adamw', 'lamb'])
def test_each_update_takes_the_learning_rate_it_is_given(name):
    config = OptimizerConfig(name=name)
    rates = [0.1, 0.01, 0.02]
    got = run([transformation(config, rate, 0.1) for rate in rates], draw(0), steps=3)

    def schedule(step):
        return jnp.array(rates)[step]

    options = dict(b1=config.beta1, b2=config.beta2, eps=config.epsilon)
    theirs = optax.adamw if name == 'adamw' else optax.lamb
    optimizer = by_kind(theirs(schedule, weight_decay=0.1, **options), optax.adam(schedule, **options))
    assert_close(unstacked(got), run([optimizer], unstacked(draw(0)), steps=3))


def test_clipping_comes_before_the_moments():
    params, grads = draw(0), draw(1)
    for clip_norm in (0.5, 1e9):
        config = OptimizerConfig(clip_norm=clip_norm, beta1=0.9)
        optimizer = transformation(config, 0.01, 0.1)
        _, state = jax.jit(optimizer.update)(grads, optimizer.init(params), params)
        norm = np.sqrt(sum(np.square(np.float64(leaf)).sum() for leaf in jax.tree.leaves(grads)))
        moments = next(part for part in state if isinstance(part, optax.ScaleByAdamState))
        factor = min(1.0, clip_norm / norm)
        assert_close(moments.mu, jax.tree.map(lambda leaf: 0.1 * factor * leaf, grads))  # noqa: B023


@pytest.mark.parametrize('name', ['adamw', 'lamb'])
@pytest.mark.parametrize('bias_correction', [True, False])
def test_replicas_do_not_mix(name, bias_correction):
    """Under vmap each replica has its own learning rate, decay, clipping and trust ratios."""
    config = OptimizerConfig(name=name, bias_correction=bias_correction, clip_norm=1.0)

    @jax.jit
    def step(params, grads, state, rate, decay):
        updates, state = transformation(config, rate, decay).update(grads, state, params)
        return optax.apply_updates(params, updates), state

    replicas = [(draw(0), draw(1, 1e-3), 0.1, 0.0), (draw(2, 10.0), draw(3, 10.0), 0.01, 0.5)]
    alone = []
    for params, grads, rate, decay in replicas:
        alone.append(step(params, grads, transformation(config, 0.0, 0.0).init(params), rate, decay))
    params, grads, rates, decays = (
        jax.tree.map(lambda *leaves: np.stack(leaves), *part) for part in zip(*replicas, strict=True)
    )
    state = jax.vmap(transformation(config, 0.0, 0.0).init)(params)
    together = jax.jit(jax.vmap(step))(params, grads, state, rates, decays)
    for i, want in enumerate(alone):
        assert_close(jax.tree.map(lambda leaf: leaf[i], together[0]), want[0])  # noqa: B023


@pytest.mark.parametrize('name', ['adamw', 'lamb'])
@pytest.mark.parametrize('bias_correction', [True, False])
def test_the_state_does_not_depend_on_what_is_traced(name, bias_correction):
    config = OptimizerConfig(name=name, bias_correction=bias_correction)
    want = jax.tree.map(jnp.shape, transformation(config, 0.0, 0.0).init(draw(0)))
    params, state = draw(0), transformation(config, 0.0, 0.0).init(draw(0))
    compiles = 0

    @jax.jit
    def step(params, state, rate, decay):
        nonlocal compiles
        compiles += 1
        updates, state = transformation(config, rate, decay).update(draw(1), state, params)
        return optax.apply_updates(params, updates), state

    for rate, decay in ((0.1, 0.0), (0.01, 0.1)):
        params, state = step(params, state, jnp.float32(rate), jnp.float32(decay))
        assert jax.tree.map(jnp.shape, state) == want
    assert compiles == 1
    moments = next(part for part in state if isinstance(part, optax.ScaleByAdamState))
    assert moments.count == 2


MODEL = dict(layers=2, width=8, heads=2, feed_forward=16, max_length=16, vocab_size=20)
SHARED = {
    'embeddings/norm/bias': False,
    'embeddings/norm/scale': False,
    'embeddings/token/embedding': True,
    'embeddings/type/embedding': True,
    'head/bias': False,
    'head/dense/bias': False,
    'head/dense/kernel': True,
    'head/norm/bias': False,
    'head/norm/scale': False,
    'layers/attention/key/bias': False,
    'layers/attention/key/kernel': True,
    'layers/attention/output/bias': False,
    'layers/attention/output/kernel': True,
    'layers/attention/query/bias': False,
    'layers/attention/query/kernel': True,
    'layers/attention/value/bias': False,
    'layers/attention/value/kernel': True,
    'layers/attention_norm/bias': False,
    'layers/attention_norm/scale': False,
    'layers/feed_forward/down/bias': False,
    'layers/feed_forward/down/kernel': True,
    'layers/feed_forward/up/bias': False,
    'layers/feed_forward/up/kernel': True,
    'layers/feed_forward_norm/bias': False,
    'layers/feed_forward_norm/scale': False,
}
LEARNED = {'embeddings/position/embedding': True}
PRE = {'final_norm/bias': False, 'final_norm/scale': False}


@pytest.mark.parametrize(
    ('fields', 'own'),
    [
        (dict(norm='post', positions='learned'), LEARNED),
        (dict(norm='pre', positions='learned'), LEARNED | PRE),
        (dict(norm='pre', positions='rotary'), PRE),
    ],
)
def test_every_leaf_of_the_model_is_listed(fields, own):
    params = jax.eval_shape(lambda key: mlm.init(key, ModelConfig(**MODEL, **fields)), jax.random.key(0))
    assert names(decayed(params)) == SHARED | own


def test_every_leaf_of_the_pooler_is_listed():
    pooler = mlm.shapes(ModelConfig(**MODEL))['pooler']
    assert sorted(names(decayed(pooler)).values()) == [False, True]
    assert all(flag == name.endswith('kernel') for name, flag in names(decayed(pooler)).items())


def test_a_leaf_of_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"layers.*gate.*'gamma'"):
        decayed({'layers': {'gate': {'gamma': jnp.ones(3)}}})
    with pytest.raises(ValueError, match="'gamma'"):
        transformation(OptimizerConfig(), 0.1, 0.1).init({'gamma': jnp.ones(3)})


def test_decay_shrinks_kernels_alone():
    """With gradients of zero only decay moves a weight; a norm's scale has two axes when stacked, and stays."""
    params = draw(0)
    optimizer = transformation(OptimizerConfig(), 0.1, 0.5)
    updates, _ = optimizer.update(jax.tree.map(jnp.zeros_like, params), optimizer.init(params), params)
    for name, new in names(optax.apply_updates(params, updates)).items():
        factor = 0.95 if name.endswith(('kernel', 'embedding')) else 1.0
        np.testing.assert_allclose(new, factor * names(params)[name], rtol=1e-6, err_msg=name)
