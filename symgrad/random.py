"""Random numbers: tensors of them, generators, and their state, with torch's names."""

from symgrad.factories.generators import Generator, default_generator, fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from symgrad.factories.random_tensors import (
    bernoulli,
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

__all__ = ["Generator", "bernoulli", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "multinomial", "normal",
           "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "seed", "set_rng_state"]
