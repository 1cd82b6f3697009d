"""Random numbers have the distributions they are named after, by Kolmogorov's and chi-squared tests that see a neighbouring distribution."""

import math

import numpy as np
import pytest
import scipy.stats

import symgrad

N = 20000
BOUND = 1.95 / math.sqrt(N)  # of Kolmogorov's distance: right numbers are beyond it once in a thousand seeds


def filled(name, *args, **words):
    return lambda: getattr(symgrad.empty(N), name)(*args, **words)


normal = scipy.stats.norm
CONTINUOUS = {
    "rand": (lambda: symgrad.rand(N), scipy.stats.uniform(), scipy.stats.uniform(0.03, 0.97)),
    "rand_like": (lambda: symgrad.rand_like(symgrad.empty(N)), scipy.stats.uniform(), scipy.stats.uniform(0, 1.03)),
    "uniform_": (filled("uniform_", 2.0, 5.0), scipy.stats.uniform(2, 3), scipy.stats.uniform(2, 3.1)),
    "randn": (lambda: symgrad.randn(N), normal(), normal(0, 1.05)),
    "randn_like": (lambda: symgrad.randn_like(symgrad.empty(N)), normal(), normal(0.05)),
    "normal": (lambda: symgrad.normal(3.0, 2.0, (N,)), normal(3, 2), normal(3, math.sqrt(2))),
    "normal of tensors": (lambda: symgrad.normal(symgrad.full((N,), 3.0), symgrad.full((N,), 2.0)), normal(3, 2), normal(3.1, 2)),
    "normal_": (filled("normal_", -1.0, 0.5), normal(-1, 0.5), normal(-1, 0.25)),
    "complex randn": (lambda: symgrad.randn(N, dtype=symgrad.complex128).real, normal(0, math.sqrt(0.5)), normal()),
    "exponential_": (filled("exponential_", 3.0), scipy.stats.expon(0, 1 / 3), scipy.stats.expon(0, 3)),
    "cauchy_": (filled("cauchy_", 1.0, 2.0), scipy.stats.cauchy(1, 2), scipy.stats.cauchy(1, 1.9)),
    "log_normal_": (filled("log_normal_", 0.5, 0.25), scipy.stats.lognorm(0.25, 0, math.exp(0.5)), scipy.stats.lognorm(0.5, 0, math.exp(0.25))),
}
DISCRETE = {
    "bernoulli": (lambda: symgrad.bernoulli(symgrad.full((N,), 0.3)), scipy.stats.bernoulli(0.3), scipy.stats.bernoulli(0.33)),
    "bernoulli_": (filled("bernoulli_", 0.3), scipy.stats.bernoulli(0.3), scipy.stats.bernoulli(0.27)),
    "bernoulli_ of a tensor": (lambda: symgrad.empty(N).bernoulli_(symgrad.full((N,), 0.9)), scipy.stats.bernoulli(0.9), scipy.stats.bernoulli(0.92)),
    "geometric_": (filled("geometric_", 0.3), scipy.stats.geom(0.3), scipy.stats.geom(0.3, -1)),
    "poisson": (lambda: symgrad.poisson(symgrad.full((N,), 4.0)), scipy.stats.poisson(4), scipy.stats.poisson(4.2)),
    "binomial": (lambda: symgrad.binomial(symgrad.full((N,), 9.0), symgrad.tensor(0.4)), scipy.stats.binom(9, 0.4), scipy.stats.binom(9, 0.42)),
    "randint": (lambda: symgrad.randint(2, 7, (N,)), scipy.stats.randint(2, 7), scipy.stats.randint(2, 8)),
    "randint_like": (lambda: symgrad.randint_like(symgrad.empty(N), 5), scipy.stats.randint(0, 5), scipy.stats.randint(1, 5)),
    "random_": (filled("random_", -2, 3), scipy.stats.randint(-2, 3), scipy.stats.randint(-2, 4)),
    "random_ of booleans": (lambda: symgrad.empty(N, dtype=symgrad.bool).random_(), scipy.stats.bernoulli(0.5), scipy.stats.bernoulli(0.53)),
    "multinomial": (lambda: symgrad.multinomial(symgrad.tensor([1.0, 3.0, 4.0]), N, replacement=True),
                    scipy.stats.rv_discrete(values=([0, 1, 2], [1 / 8, 3 / 8, 1 / 2])),
                    scipy.stats.rv_discrete(values=([0, 1, 2], [0.15, 0.35, 0.5]))),
    "randperm": (lambda: symgrad.stack([symgrad.randperm(5)[0] for _ in range(4000)]), scipy.stats.randint(0, 5), scipy.stats.randint(0, 6)),
}


def distance(numbers, distribution):
    """Kolmogorov's: the largest difference of the distribution functions."""
    return scipy.stats.kstest(numbers, distribution.cdf).statistic


def p_value(numbers, distribution):
    """The chance of as large a sum of squared errors of the counts."""
    kinds = np.arange(int(min(numbers.min(), distribution.ppf(0.001))), int(max(numbers.max(), distribution.ppf(0.999))) + 1)
    expected = distribution.pmf(kinds) * len(numbers)
    counts = np.array([(numbers == k).sum() for k in kinds])
    if (counts[expected == 0] > 0).any():
        return 0.0
    often = expected >= 5
    observed, expected = np.append(counts[often], counts[~often].sum()), np.append(expected[often], len(numbers) - expected[often].sum())
    kept = expected > 1e-9
    return scipy.stats.chi2.sf(((observed - expected)[kept] ** 2 / expected[kept]).sum(), kept.sum() - 1)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    draw, right, wrong = CONTINUOUS[name]
    symgrad.manual_seed(11)
    numbers = draw().numpy()
    assert numbers.shape == (N,) and distance(numbers, right) < BOUND < distance(numbers, wrong)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    draw, right, wrong = DISCRETE[name]
    symgrad.manual_seed(11)
    numbers = draw().numpy().astype(int)
    assert p_value(numbers, right) > 1e-3 > p_value(numbers, wrong)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_the_seed_decides_and_numbers_go_on(name):
    draw = (CONTINUOUS | DISCRETE)[name][0]
    symgrad.manual_seed(5)
    first, second = draw().numpy(), draw().numpy()
    symgrad.manual_seed(5)
    assert (draw().numpy() == first).all() and not (second == first).all()
    high = [x.astype(float) > x.astype(float).mean() for x in (first, second)]
    assert abs(np.corrcoef(*high)[0, 1]) < 5 / math.sqrt(len(first))


DRAWS = {
    "rand": lambda g: symgrad.rand(4, generator=g), "randn": lambda g: symgrad.randn(4, generator=g),
    "randint": lambda g: symgrad.randint(9, (4,), generator=g), "randperm": lambda g: symgrad.randperm(9, generator=g),
    "normal": lambda g: symgrad.normal(0.0, 1.0, (4,), generator=g), "poisson": lambda g: symgrad.poisson(symgrad.full((9,), 5.0), g),
    "bernoulli": lambda g: symgrad.bernoulli(symgrad.full((40,), 0.5), generator=g),
    "binomial": lambda g: symgrad.binomial(symgrad.full((9,), 9.0), symgrad.tensor(0.5), g),
    "multinomial": lambda g: symgrad.multinomial(symgrad.ones(9), 9, generator=g),
    "rrelu": lambda g: symgrad.rrelu(-symgrad.ones(4), training=True, generator=g),
    **{f"{name}_": lambda g, name=name: getattr(symgrad.empty(9), f"{name}_")(*((0.5,) if name == "geometric" else ()), generator=g)
       for name in ("normal", "uniform", "random", "bernoulli", "exponential", "geometric", "log_normal", "cauchy")},
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_generator_has_its_own_state(name):
    draw = DRAWS[name]
    before = symgrad.get_rng_state()
    first, again, other = (draw(symgrad.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert (first == again).all() and not (first == other).all()
    assert (symgrad.get_rng_state() == before).all()


def test_without_replacement_no_index_comes_twice():
    symgrad.manual_seed(0)
    drawn = symgrad.multinomial(symgrad.tensor([1.0, 2.0, 0.0, 4.0]).expand(N, 4), 3).numpy()
    assert (np.sort(drawn, 1) == [0, 1, 3]).all()
    second = {(0, 1): 1 / 7 * 2 / 6, (3, 1): 4 / 7 * 2 / 3, (1, 3): 2 / 7 * 4 / 5}
    for (a, b), chance in second.items():
        share = ((drawn[:, 0] == a) & (drawn[:, 1] == b)).mean()
        assert abs(share - chance) < 4 * math.sqrt(chance * (1 - chance) / N)
