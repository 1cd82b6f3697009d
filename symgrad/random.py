"""Random numbers: tensors of them, generators, and their state, with torch's names; and numbers that are differentiable by their distribution."""

import functools
from typing import Any

import numpy as np

from symgrad.carriers.batched import Batched
from symgrad.engine.data import as_value
from symgrad.engine.recording import core
from symgrad.engine.tensor import Tensor, wrap
from symgrad.factories.generators import Generator, default_generator, fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from symgrad.factories.random_tensors import (
    bernoulli,
    binomial,
    gamma_numbers,
    multinomial,
    normal,
    poisson,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
)
from symgrad.graph.op import REGISTRY

__all__ = ["Generator", "bernoulli", "binomial", "default_generator", "fork_rng", "gamma", "get_rng_state", "initial_seed", "manual_seed",
           "multinomial", "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "seed",
           "set_rng_state"]


@functools.cache
def _along_concentrations() -> Any:
    """The function of a concentration and of numbers drawn with it, along which the value of the distribution function stays the same."""
    from symgrad.func.foreign import foreign  # whose import takes long

    derivative, density = core(REGISTRY["gammainc_derivative"]), core(REGISTRY["gamma_density"])

    @foreign
    def standard_gamma(concentration: Any, numbers: Any) -> Any:
        return numbers

    def slope(tangent: Any, y: Any, concentration: Any, numbers: Any) -> Any:
        return -tangent * derivative(concentration, y, 1) / density(concentration, y, 0)

    standard_gamma.defjvps(slope, None)
    standard_gamma.defvmap(lambda info, in_dims, concentration, numbers: (numbers, in_dims[1]))
    return standard_gamma


def _standard_gamma(input: Tensor, generator: Any = None) -> Tensor:
    """Random numbers from gamma distributions with the concentrations of the input and scale 1, as `gamma`, with torch's name."""
    numbers = gamma_numbers(as_value(input), generator)
    drawn = wrap(numbers if type(numbers) is Batched or numbers.ndim else numbers[()])
    return _along_concentrations()(input, drawn)


def gamma(concentration: Any, rate: Any = 1.0, *, generator: Any = None) -> Tensor:
    """Random numbers from gamma distributions, differentiable by the concentration and by the rate.

    The density is rateᵃ zᵃ⁻¹ exp(-rate z) / Γ(a) for a = `concentration`. The numbers z are a function of the parameters by implicit
    reparametrization: the value of the distribution function stays the same, so that for rate = 1 dz/da = -(∂P/∂a) / (∂P/∂z) with the regularized
    incomplete gamma function P(a, z), and derivatives of expectations are expectations of derivatives. This holds for every order in both modes.
    A number below the smallest normal one of the dtype, as a small concentration makes them, is this one. Figurnov, Mohamed and Mnih,
    arXiv:1805.08498.

    Args:
        concentration: positive numbers; the shape is that of `concentration` and `rate`, broadcast.
        rate: positive numbers, the inverse of the scale.
        generator: a Generator; by default that of `manual_seed`.

    Raises NotImplementedError for integers and complex numbers, RuntimeError for a concentration or a rate that is not positive.

    >>> import symgrad
    >>> a = symgrad.full((10_000,), 2.0, requires_grad=True)
    >>> z = symgrad.random.gamma(a, generator=symgrad.Generator().manual_seed(0))
    >>> (z**2).mean().backward()
    >>> abs(a.grad.sum().item() - 5) < 0.2  # the expectation of z**2 is a (a + 1)
    True
    """
    concentration, rate = (x if isinstance(x, Tensor) else wrap(as_value(x)) for x in (concentration, rate))
    if not (rate.detach() > 0).all():
        raise RuntimeError("a gamma distribution has a positive rate")
    shape = np.broadcast_shapes(concentration.shape, rate.shape)
    return _standard_gamma(concentration.expand(shape), generator) / rate
