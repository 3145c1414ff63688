"""Names for the axes of activations.

The model says what an axis is, never where it lies: whoever traces it on a mesh gives the names a meaning, and without
that they mean nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol

import jax

Axes = tuple[str | None, ...]


class Layout(Protocol):
    """What names mean; raises on a name that it does not know."""

    def place(self, x: jax.Array, axes: Axes) -> jax.Array:
        """`x`, laid out as its axes' names say."""
        ...

    def per_device(self, function: Callable, in_axes: Any, out_axes: Any) -> Callable:
        """`function` of each device's part of its arguments, for kernels that the compiler cannot cut up."""
        ...


_layout: ContextVar[Layout | None] = ContextVar('layout', default=None)


@contextmanager
def laid_out(layout: Layout) -> Iterator[None]:
    """What is traced inside is laid out by `layout`."""
    token = _layout.set(layout)
    try:
        yield
    finally:
        _layout.reset(token)


def named(x: jax.Array, *axes: str | None) -> jax.Array:
    """`x`, whose axes have these names (None: one that is never cut): batch, length, width, vocab, heads, head, ..."""
    layout = _layout.get()
    return x if layout is None else layout.place(x, axes)


def used(table_VxD: jax.Array, *axes: str) -> jax.Array:
    """A table of embeddings as it is looked up in, as wide as the activations are.

    Its gradient is summed up in that form before it is laid out as the table is: otherwise the compiler, so as to cut
    the sum, brings all rows of a batch to each device.
    """
    layout = _layout.get()
    return table_VxD if layout is None else _used(table_VxD, layout, axes)


@partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _used(table_VxD, layout, axes):
    return layout.place(table_VxD, tuple('width' if name == 'embed' else name for name in axes))


_used.defvjp(
    lambda table_VxD, layout, axes: (_used(table_VxD, layout, axes), None),
    lambda layout, axes, _, gradient_VxD: (layout.place(_used(gradient_VxD, layout, axes), axes),),
)


def per_device(function: Callable, in_axes: tuple[Axes, ...], out_axes: Any) -> Callable:
    """`function` of arrays, run by each device on its own part of them, which it must be able to treat alone.

    Args:
      in_axes: names of the axes of each argument, as `named` takes them.
      out_axes: those of the result; of several results a tuple of such tuples.
    """
    layout = _layout.get()
    return function if layout is None else layout.per_device(function, in_axes, out_axes)
