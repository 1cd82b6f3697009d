"""The examples of an op: inside the domains, with every edge, equal for equal seeds, and simple after shrinking."""

import functools
import math
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import symgrad
from symgrad.frameworks.adapter import NotApplicable
from symgrad.graph.domains import BOOLEAN, COMPLEX, NONZERO, POSITIVE, REAL, UNIT_OPEN, Domain
from symgrad.graph.op import REGISTRY
from symgrad.sampling.domain_reader import domain_of
from symgrad.testing import attack as attacks
from symgrad.testing import examples as drafts
from symgrad.testing.attack import Attack, edge_examples, random_examples
from symgrad.testing.claimed import special_points
from symgrad.testing.claims import Claims
from symgrad.testing.examples import KINDS

OPS = ["sin", "log", "pow", "tan", "maximum", "add_quotient", "where", "mm", "amax", "cat", "clamp_number"]
ON_ELEMENTS = [name for name in OPS if REGISTRY[name].kind == "elementwise"]


@functools.cache
def attack_on(name):
    """One attack for all tests."""
    return Attack(REGISTRY[name])


def domain(attack, i):
    """The domain of an argument."""
    return attack.domains[min(i, len(attack.domains) - 1)]


def columns(examples):
    """The points of examples of an elementwise op, one tuple each."""
    return [point for e in examples for point in zip(*(x.ravel().tolist() for x in np.broadcast_arrays(*e.xs)))]


def same(a, b):
    """Whether two examples are equal, bit for bit."""
    left, right = ([*e.xs, e.cotangent, *(t for s in e.tangents for t in s if t is not None)] for e in (a, b))
    return [(x.shape, x.dtype, x.tobytes()) for x in left] == [(x.shape, x.dtype, x.tobytes()) for x in right]


# What holds of every example


@pytest.mark.sampled(26)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPS)
def test_examples_fit_the_op(name, kind):
    attack = attack_on(name)
    try:
        examples = attack.examples(kind)
    except NotApplicable:
        assert not attack.elementwise and kind in ("broadcast", "scalars", "empty")
        return
    for example in examples:
        value = attack.subject.value([x.real.copy() for x in example.xs])
        assert example.cotangent.shape == value.shape and len(example.tangents) == 3
        for i, x in enumerate(example.xs):
            inside = domain(attack, i)
            assert (x.dtype == bool) == (inside is BOOLEAN) and all(v in inside for v in x.real.ravel().tolist())
            for tangent in (s[i] for s in example.tangents):
                assert tangent is None if x.dtype == bool else tangent.shape == x.shape and np.all(np.abs(tangent) >= 0.5)
        assert np.all(np.abs(example.cotangent) >= 0.5)
        assert attack.elementwise or kind == "special" or tuple(x.shape for x in example.xs) == attack.shapes


@pytest.mark.parametrize("name", ["pow", "mm"])
def test_the_three_sets_of_tangents_differ(name):
    for example in [e for e in edge_examples(attack_on(name), "points") if e.cotangent.size >= 6]:
        parts = [example.cotangent, *(t for s in example.tangents for t in s)]
        assert len({p.tobytes() for p in parts}) == len(parts)


def test_shapes_of_each_kind():
    attack = attack_on("maximum")
    shapes = {kind: {tuple(x.shape for x in e.xs) for e in attack.examples(kind)} for kind in KINDS}
    for kind in ("points", "low", "complex"):
        assert {((),) * 2, ((1,),) * 2, ((4,),) * 2, ((2, 3),) * 2} <= shapes[kind] and all(a == b for a, b in shapes[kind])
    assert shapes["scalars"] == shapes["special"] == {((), ())}
    assert all(0 in np.broadcast_shapes(*pair) for pair in shapes["empty"]) and ((0,), (1,)) in shapes["empty"]
    broadcast = shapes["broadcast"]
    assert any(a != b for a, b in broadcast) and {((2, 1), (3,)), ((0,), (1,))} <= broadcast
    assert any(() in pair for pair in broadcast) and any(len(a) > len(b) > 0 for a, b in broadcast)


def test_an_op_that_writes_to_its_arguments_does_not_change_those_of_another():
    first, second = Attack(REGISTRY["sin"]), Attack(REGISTRY["cos"])
    before = second.examples("points")
    for x in first.examples("points"):
        x.xs[0][...] = 7.0
    assert all(same(a, b) for a, b in zip(before, Attack(REGISTRY["cos"]).examples("points")))
    assert not any(np.shares_memory(a.xs[0], b.xs[0]) for a in before for b in first.examples("points"))


# Numbers


@pytest.mark.parametrize("name", ON_ELEMENTS)
def test_ordinary_numbers_are_on_all_sides_of_one(name):
    attack = attack_on(name)
    for examples in (edge_examples(attack, "points"), random_examples(Attack(REGISTRY[name], profile="ci"), "points")):
        for i, numbers in enumerate(zip(*columns(examples))):
            for low, high in ((-10, -1), (-1, 0), (0, 1), (1, 10)):
                if (low + high) / 2 + 0.1 in domain(attack, i):
                    assert sum(low < x < high for x in numbers) >= 2


@pytest.mark.parametrize("name", ["sin", "log", "atanh", "reciprocal", "acosh"])
def test_every_edge_is_always_there(name):
    attack = attack_on(name)
    numbers = [x for (x,) in columns(edge_examples(attack, "points"))]
    wanted = {"sin": [0.0, -0.0, 5e-324, -5e-324, 1e300, -1e300, 40.7], "log": [5e-324, 2.0**-26, 1e-300, 1e300], "reciprocal": [5e-324, -5e-324],
              "atanh": [1 - 2.0**-53, -1 + 2.0**-53, 1 - 2.0**-26, 1 - 2.0**-4, 0.0, -0.0], "acosh": [1 + 2.0**-52, 1 + 2.0**-26, 1e300]}[name]
    for x in wanted:
        assert any(x == y and math.copysign(1, x) == math.copysign(1, y) for y in numbers), x
    assert len(numbers) < 120


def test_a_formulas_kinks_and_poles_are_edges():
    attack = Attack(lambda x, y: symgrad.abs(x - 3) / (y - 2.5), Claims(formula="abs(x - 3)/(y - 2.5)", domain={"y": "(2.5, inf)"}))
    points = columns(edge_examples(attack, "points"))
    for x in (3.0, math.nextafter(3, 4), math.nextafter(3, 2), 3 + 2.0**-26 * 3):
        assert any(p[0] == x for p in points)
    for y in (math.nextafter(2.5, 3), 2.5 + 2.5 * 2.0**-26):
        assert any(p[1] == y for p in points)


def test_a_domain_with_many_holes_has_the_nearest_first():
    poles = tuple((k + 0.5) * math.pi for k in range(-20, 20))
    attack = Attack(REGISTRY["tan"], Claims(domain=Domain("without poles", excluded=poles)))
    numbers = [x for (x,) in columns(edge_examples(attack, "points"))]
    assert len(numbers) < 120
    for pole in (math.pi / 2, -math.pi / 2):
        assert {math.nextafter(pole, 9), math.nextafter(pole, -9)} <= set(numbers)


def test_several_arguments():
    """Each argument's edges beside ordinary numbers, edges combined, and ties, of which some are no edges; tame points apart from the others."""
    examples = edge_examples(attack_on("maximum"), "points")
    points = columns(examples)

    def extreme(x):
        return x != 0 and not 1e-5 <= abs(x) <= 1e3

    assert any(extreme(x) and 0.1 < abs(y) < 10 for x, y in points) and any(extreme(y) and 0.1 < abs(x) < 10 for x, y in points)
    assert sum(extreme(x) and extreme(y) for x, y in points) >= 10 and len({p for p in points if p[0] == p[1]}) >= 10
    for example in examples:
        wild = [any(map(extreme, p)) for p in columns([example])]
        assert all(wild) or not any(wild)


def test_ties_are_drawn():
    pairs = [e.xs for e in Attack(REGISTRY["maximum"], profile="ci").examples("points")[-60:]]
    assert any(np.array_equal(x, y) and x.size > 1 and len(set(x.ravel().tolist())) > 1 for x, y in pairs)
    assert any((x == y).any() and not (x == y).all() for x, y in pairs)
    assert any(np.array_equal(np.nextafter(x, np.inf), y) for x, y in pairs)


def test_numbers_of_low_precision_are_exact_in_every_type():
    for name in ("sin", "pow", "mm", "tan"):
        for example in attack_on(name).examples("low"):
            for x in example.xs:
                assert x.dtype == np.float64 and np.all((x == 0) | (np.abs(x) >= 2.0**-6) & (np.abs(x) <= 64))
                for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
                    assert np.array_equal(x.astype(dtype).astype(np.float64), x)


def test_complex_numbers_of_each_kind():
    """On both axes, off them, in conjugate pairs; of a moderate size; never on the imaginary axis beyond ±i, where cuts are."""
    for name in ("sin", "atan", "mm"):
        examples = attack_on(name).examples("complex")
        numbers = np.concatenate([x.ravel() for e in examples for x in e.xs])
        assert numbers.dtype == complex and np.all(np.abs(numbers) < 20)
        assert not np.any((numbers.real == 0) & (np.abs(numbers.imag) >= 1))
        assert np.any((numbers.real == 0) & (numbers.imag != 0)) or name == "mm"
        assert np.any((numbers.imag == 0) & (numbers.real != 0)) and np.any((numbers.real != 0) & (numbers.imag != 0))
        pairs = [e for e in examples for x in [e.xs[0].ravel()] if {z for z in x if z.imag > 0} & {z.conjugate() for z in x if z.imag < 0}]
        assert pairs and all(e.cotangent.dtype == complex and e.tangents[0][0].dtype == complex for e in examples)
    assert np.all(np.concatenate([e.xs[0].ravel() for e in attack_on("log").examples("complex")]).real > 0)


def test_special_points():
    attack = Attack(REGISTRY["maximum"], Claims(special=((2.0, 2.0), ((3.0, 3.0), (0.5, 0.5)))))
    assert special_points(attack) == [((2.0, 2.0), None), ((3.0, 3.0), (0.5, 0.5)), ((0.0, 0.0), None), ((1.0, 1.0), None)]
    assert [tuple(map(float, e.xs)) for e in attack.examples("special")] == [(2.0, 2.0), (3.0, 3.0), (0.0, 0.0), (1.0, 1.0)]
    one = Attack(symgrad.abs, Claims(special=(5.0, (6.0,), (0.0, 0.25), ((7.0,), (1.0,)))))
    assert special_points(one)[:4] == [((5.0,), None), ((6.0,), None), ((0.0,), 0.25), ((7.0,), (1.0,))]
    arrays = Attack(symgrad.sum, Claims(special=(0.0,), shapes=((2, 2),)))
    assert np.array_equal(arrays.examples("special")[0].xs[0], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="has 3 numbers, the op has 2 arguments"):
        Attack(REGISTRY["maximum"], Claims(special=((1.0, 1.0, 1.0),))).examples("special")
    assert not attack_on("sin").examples("special")


def test_arrays_in_every_arrangement():
    attack = Attack(REGISTRY["cumprod"], profile="ci")
    for examples in (edge_examples(attack, "points"), random_examples(attack, "points")):
        xs = [e.xs[0] for e in examples]
        flats = [x.ravel() for x in xs]
        assert any(len(set(f.tolist())) == f.size for f in flats) and any((f == f[0]).all() for f in flats)
        assert any((x[0] == x).all() and x[0, 0] != x[0, 1] for x in xs) and any((f == 0).sum() * 2 >= f.size for f in flats)
        for sign in (1, -1):
            assert any((np.diff(sign * f) >= 0).all() and f[0] != f[-1] for f in flats)
        assert any((f[1::2] == f[::2]).all() and len(set(f.tolist())) > 2 for f in flats)
        sizes = [np.abs(f[f != 0]) for f in flats]
        assert any(s.size and s.max() / s.min() > 1e3 for s in sizes) and all((s >= 1e-6).all() and (s <= 300).all() for s in sizes)


def test_conditions_and_whole_numbers():
    assert {x.dtype.kind for e in attack_on("where").examples("points") for x in e.xs[:1]} == {"b"}
    attack = Attack(symgrad.sin, Claims(domain="integer"))
    numbers = [x for (x,) in columns(attack.examples("points"))]
    assert all(x.is_integer() for x in numbers) and len(set(numbers)) > 15


def test_an_op_that_always_raises_is_refused():
    def broken(x):
        raise RuntimeError("broken")

    with pytest.raises(ValueError, match=r"broken gives no value: called with x = .* it raised RuntimeError .*: broken"):
        Attack(broken, Claims(shapes=((2,),), formula="x")).examples("points")


def test_a_framework_without_subnormals_is_given_none():
    """As XLA is, which takes them for zero; nor numbers whose products with others are subnormal."""
    attack = Attack(REGISTRY["sin"])
    attack.subject.subnormals = False
    numbers = np.array([x for (x,) in columns([*edge_examples(attack, "points"), *random_examples(attack, "points")])])
    assert not np.any((numbers != 0) & (np.abs(numbers) < 2.0**-1000)) and 1e-300 in numbers and 0.0 in numbers


def test_another_kind_is_refused():
    with pytest.raises(ValueError, match="no examples of the kind 'dots'; those are points, broadcast"):
        attack_on("sin").examples("dots")
    with pytest.raises(NotApplicable, match="no number of the type"):
        Attack(symgrad.sin, Claims(domain=(1.001, 1.002))).examples("low")


# Drawing


@pytest.mark.sweep
def test_a_seed_gives_the_same_examples_in_every_process():
    program = ("import hashlib, symgrad; from symgrad.graph.op import REGISTRY; from symgrad.testing.attack import Attack\n"
               "d = hashlib.sha256()\n"
               "for name in ('pow', 'mm'):\n"
               "    for kind in ('points', 'low', 'complex'):\n"
               "        for e in Attack(REGISTRY[name], seed=5).examples(kind):\n"
               "            for x in (*e.xs, e.cotangent, *e.tangents[2]): d.update(x.tobytes())\n"
               "print(d.hexdigest())")
    run = [subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True,
                          check=True).stdout for seed in ("1", "2")]
    assert run[0] == run[1] and len(run[0]) == 65
    first, again, other = (attacks._search.__wrapped__(attacks.plan_of(attack_on("sin"), "points"), seed, 20) for seed in (1, 1, 2))
    assert all(np.array_equal(a.xs, b.xs) for a, b in zip(first, again)) and not all(np.array_equal(a.xs, b.xs) for a, b in zip(first, other))


def test_ops_with_equal_domains_share_drawn_examples():
    attacks._search.cache_clear()
    for name in ("sin", "cos", "atan"):
        Attack(REGISTRY[name]).examples("points")
    assert attacks._search.cache_info().misses == 1


def test_combinations_of_edges():
    assert sorted(drafts._combined([[1.0, 2.0], [3.0, 4.0]])) == [(1.0, 3.0), (1.0, 4.0), (2.0, 3.0), (2.0, 4.0)]
    own = [[float(k) for k in range(30)], [float(k) for k in range(40)]]
    some = drafts._combined(own)
    assert 60 <= len(set(some)) == len(some) <= drafts.MAX_COMBINATIONS
    assert len({a for a, _ in some}) > 20 and len({b for _, b in some}) > 25


@pytest.mark.sweep
def test_domains_of_all_kinds():
    for given_domain in ("(0, 1]", (2, 3), domain_of("positive"), "nonzero", "{-1, 1}"):
        attack = Attack(symgrad.sin, Claims(domain=given_domain))
        for kind in ("points", "low", "complex", "scalars"):
            for example in attack.examples(kind):
                assert all(x in domain_of(given_domain) for x in example.xs[0].real.ravel().tolist())
    assert {d.name for d in (REAL, NONZERO, POSITIVE, UNIT_OPEN)} == {"REAL", "NONZERO", "POSITIVE", "UNIT_OPEN"}


def test_arguments_that_are_complex_numbers():
    attack = Attack(lambda z, a: z * z.conj() * a, Claims(domain={"z": COMPLEX, "a": POSITIVE}, elementwise=True))
    for example in attack.examples("points"):
        z, a = example.xs
        assert z.dtype == example.cotangent.dtype == example.tangents[0][0].dtype == complex and a.dtype == example.tangents[0][1].dtype == float
        assert np.all(a > 0)
    real = Attack(lambda z: symgrad.view_as_real(z), Claims(domain=COMPLEX, shapes=((2, 3),)))
    assert all(e.xs[0].dtype == complex and e.cotangent.dtype == float and e.cotangent.shape == (2, 3, 2) for e in real.examples("points"))
    made = Attack(lambda x: symgrad.view_as_complex(x), Claims(shapes=((3, 2),), formula="x"))
    assert all(e.xs[0].dtype == float and e.cotangent.dtype == complex for e in made.examples("points"))
    assert made.of_complex == "its values are complex"
    assert real.of_complex == "it takes complex numbers" and not Attack(symgrad.sin).of_complex and made.truth is None
    with pytest.raises(NotApplicable, match="complex"):
        real.examples("low")


def test_values_that_leave_the_range_of_floats_where_a_derivative_does_not():
    """Are among those of several arguments: a**2 overflows at 1e200, and 2 a does not."""
    points = {p for e in Attack(REGISTRY["pow"]).examples("points") for p in zip(*(x.ravel().tolist() for x in e.xs))}
    scales = [(round(math.log10(a)), b) for a, b in points if math.isfinite(a) and a > 0]
    assert {(200, 2.0), (-200, 2.0), (200, -2.0), (-200, -2.0)} <= set(scales)
