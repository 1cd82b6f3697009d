"""JAX under attack: functions with rules of their own, right and wrong, in 64 bits, by the same checks and with the same reports as symgrad's own."""

import functools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from symgrad.frameworks.adapter import NotApplicable
from symgrad.frameworks.naming import import_path
from symgrad.testing import CHECKS, CheckFailure, check_op
from symgrad.testing.attack import Attack
from tests.support.tables import table


@jax.custom_vjp
def cube(x):
    return x**3


cube.defvjp(lambda x: (cube(x), x), lambda x, g: (3 * x**2 * g,))


@jax.custom_jvp
def product(x, y):
    return x * y * y


product.defjvps(lambda t, ans, x, y: t * y * y, lambda t, ans, x, y: 2 * t * x * y)


@jax.custom_vjp
def slightly(x):
    return jnp.sin(x)


slightly.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (g * jnp.cos(x) * jnp.where(x < -1, 1.000001, 1.0),))


def by_vjp(forward, backward):
    function = jax.custom_vjp(lambda x: forward(x))
    function.defvjp(lambda x: (forward(x), x), lambda x, g: (backward(x, g),))
    return function


def by_jvp(forward, tangent):
    function = jax.custom_jvp(lambda x: forward(x))
    function.defjvps(lambda t, ans, x: tangent(x, t))
    return function


def back(function):
    """What is computed in NumPy, by a call back."""
    return lambda x: jax.pure_callback(lambda v: function(np.asarray(v)).astype(v.dtype), jax.ShapeDtypeStruct(x.shape, x.dtype), x)


SIX = by_jvp(lambda x: 6 * x, lambda x, t: 7 * t)
THREE = by_jvp(lambda x: 3 * x * x, lambda x, t: SIX(x) * t)
WRONG = table(globals(), "WRONG")


def verdict(report, check):
    return {r.check: r.verdict for r in report.results}[check]


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_op_is_caught_by_the_check_that_is_meant(name):
    op, claims, check = WRONG[name]
    report = check_op(op, **claims, checks=[check], raise_exception=False, shrink=False)
    assert verdict(report, check) == "failed", str(report)


ALL = ("value", "pullback", "pushforward", "second", "adjoint", "linearity", "scalars", "determinism", "threads", "mutation", "pickling")
NUMBERS = ("value", "pullback", "pushforward")
RIGHT = table(globals(), "RIGHT")


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_op_is_not_accused(name):
    op, claims = RIGHT[name]
    report = check_op(op, **claims, checks=ALL if name == "custom_vjp" else NUMBERS, raise_exception=False)
    assert report.verdict == "passed", str(report)


def test_derivatives_of_every_order_are_those_of_nested_pullbacks():
    subject, x, ones = Attack(cube).subject, np.array([1.0, 2.0]), [np.ones(2)]
    assert subject.gradient([x], np.array([1.0, 10.0]))[0].tolist() == [3.0, 120.0]
    assert subject.gradient([x], np.ones(2), [np.array([2.0, 3.0])])[0].tolist() == [12.0, 36.0]
    assert subject.gradient([x], np.ones(2), ones, ones)[0].tolist() == [6.0, 6.0]
    assert subject.mapped([0]).value([np.array([x, 2 * x])]).tolist() == [[1.0, 8.0], [8.0, 64.0]]
    assert subject.mapped([0]).gradient([np.array([x, 2 * x])], np.ones((2, 2)))[0].tolist() == [[3.0, 12.0], [12.0, 48.0]]
    forward = Attack(product).subject
    assert forward.tangent([x, x], [np.ones(2), None]).tolist() == [1.0, 4.0]
    found = Attack(lambda x, n: x * n, framework="jax").subject.gradient([x, np.array([2, 3])], np.ones(2))
    assert found[0].tolist() == [2.0, 3.0] and found[1] is None


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_every_dtype_goes_through_and_comes_back(dtype):
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    subject, x = Attack(cube).subject, np.array([1.0, -0.5, 2.0]).astype(kind)
    wide = jax.config.jax_enable_x64
    assert subject.value([x]).dtype == kind and subject.value([x]).tolist() == [1.0, -0.125, 8.0]
    (g,) = subject.gradient([x], np.ones(3))
    assert g.dtype == kind and g.tolist() == [3.0, 0.75, 12.0]
    assert subject.call([subject.leaf(x)]).dtype == kind and jax.config.jax_enable_x64 is wide


def test_what_a_function_has_no_rule_for_does_not_apply_and_says_why():
    found = Attack(cube)
    assert found.order == 3 and not found.subject.forward and Attack(product).order == 3
    with pytest.raises(NotApplicable, match="no forward mode: can't apply forward-mode"):
        found.subject.tangent([np.ones(2)], [np.ones(2)])
    branches = Attack(lambda x: x if x.sum() > 0 else -x, framework="jax")
    assert branches.subject.gradient([-np.ones(2)], np.ones(2))[0].tolist() == [-1.0, -1.0]
    with pytest.raises(NotApplicable, match="no rule for vmap"):
        branches.subject.mapped([0]).value([np.ones((2, 3))])
    with pytest.raises(NotApplicable, match="jax differentiates functions"):
        found.subject.grad([], [], [], False)


def test_how_often_a_rule_can_be_differentiated_is_found_out():
    once = by_vjp(back(np.sin), lambda x, g: back(np.cos)(x) * g)
    assert Attack(once, elementwise=True).order == 1 and Attack(once, elementwise=True, order=2).order == 2
    assert Attack(lambda x: back(np.sin)(x), elementwise=True, framework="jax").order == 0
    report = check_op(once, formula="sin(x)", domain=(-9, 9), order=2, checks=["pullback", "second"], raise_exception=False)
    assert verdict(report, "pullback") == "passed" and verdict(report, "second") == "failed"
    assert "do not support JVP" in report.failures[0].wrong.what


def test_the_gradient_of_complex_numbers_is_the_conjugate_of_the_one_jax_has():
    subject = Attack(jnp.square).subject
    assert subject.gradient([np.array([1 + 2j])], np.array([1.0 + 0j]))[0].tolist() == [2 - 4j]
    assert subject.gradient([np.array([1 + 2j])], np.array([1.0 + 0j]), [np.array([1j])])[0].tolist() == [-2j]


def test_few_shapes_are_drawn():
    seen = set()

    def counted(x):
        seen.add((x.shape, str(x.dtype), isinstance(x, jax.core.Tracer)))
        return jnp.sin(x)

    assert check_op(counted, formula="sin(x)", domain=(-9, 9)).verdict == "passed"
    assert {shape for shape, dtype, _ in seen if dtype == "float64"} >= {(), (1,), (20,), (2, 3), (0,), (3, 0)}
    assert {dtype for _, dtype, _ in seen} == {"float64", "float32", "float16", "bfloat16", "int64"}
    assert len(seen) < 50
    subject, x = Attack(cube).subject, np.array([1.0, 2.0])
    subject.probe([x])
    assert subject.gradient([x], np.ones(2))[0].tolist() == [3.0, 12.0] and subject.gradient([x], np.ones(2), [np.ones(2)])[0].tolist() == [6.0, 12.0]
    assert set(subject.known) == {("gradient", 0), ("tangent", 0)} and subject.orders == 3


def test_what_a_higher_order_raises_says_nothing_of_the_lower_one():
    def back(x, g):
        if x.dtype == jnp.float32:
            raise ValueError("not twice in float32")
        return -g * jnp.sin(x)

    slope = by_vjp(jnp.cos, back)
    found = Attack(by_vjp(jnp.sin, lambda x, g: g * slope(x)), formula="sin(x)", domain=(-9, 9))
    assert found.order == 3
    x = np.zeros(2, np.float32)
    assert found.subject.gradient([x], np.ones(2, np.float32))[0].tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="not twice in float32"):
        found.subject.gradient([x], np.ones(2, np.float32), [x])


NAN = {"sqrt": lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0), "log": lambda x: jnp.where(x > 1, jnp.log(x) / jnp.sqrt(x - 1), 0.0)}


@pytest.mark.parametrize("name", NAN)
def test_a_gradient_that_is_nan_beside_a_branch_not_taken_is_found_without_a_formula(name):
    (failure,) = check_op(NAN[name], domain=(-3, 3), elementwise=True, checks=["differences"], raise_exception=False, shrink=False).failures
    assert np.isnan(failure.wrong.returned) and failure.wrong.true == 0.0 and failure.wrong.order == 1
    assert "nan ULP" not in str(failure)


def test_what_is_no_array_is_refused():
    for function, words in ((lambda x: {"a": jnp.sin(x)}, "returned a dict; expected an array"), (lambda x: None, "returned None; expected an")):
        with pytest.raises(ValueError, match=words):
            check_op(function, formula="sin(x)", framework="jax")


def test_arrays_cannot_be_written_to_so_memory_is_not_checked():
    report = check_op(jnp.sin, elementwise=True, checks=["layouts", "mutation", "aliasing"])
    assert [r.verdict for r in report.results] == ["not applicable"] * 3


def test_a_function_is_imported_from_where_people_know_it():
    found = [import_path(f) for f in (jax.nn.silu, jnp.sin, jax.scipy.special.erf, jax.lax.erf_inv, cube)]
    assert found == [("jax.nn", "silu"), ("jax.numpy", "sin"), ("jax.scipy.special", "erf"), ("jax.lax", "erf_inv"), (__name__, "cube")]
    assert [Attack(f).subject.framework for f in (cube, product, jax.jit(lambda x: x), functools.partial(jnp.power, 2.0))] == ["jax"] * 4
    assert Attack(cube).names == ["x"] and Attack(jax.jit(lambda a, b: a * b)).names == ["a", "b"] and Attack(jnp.logaddexp).names == ["x0", "x1"]


def test_a_report_has_all_its_parts_and_its_code_runs():
    with pytest.raises(CheckFailure) as caught:
        CHECKS["pullback"].function(slightly, formula="sin(x)", domain=(-50, 50))
    failure = caught.value.failure
    text = str(failure)
    assert text.startswith("slightly: pullback: the gradient is wrong")
    for part in ("x          float64 ()  -2.0", "cotangent  float64 ()  1.0", "Derivative of order 1, by x", "returned  -0.4161472", "ULP",
                 "true      -0.416146836547142386", "exact is the formula sin(x)", "to see it again:", "drawn with seed=0"):
        assert part in text, part
    assert f"from {__name__} import slightly" in failure.snippet
    with pytest.raises(CheckFailure) as again:
        exec(compile(failure.snippet, "snippet", "exec"), {})
    assert again.value.failure.wrong.ulp == failure.wrong.ulp and again.value.failure.snippet == failure.snippet


def test_the_gradient_in_a_tuple_is_checked():
    claims = {"formula": "sin(x)", "domain": (-9, 9), "raise_exception": False, "shrink": False}
    report = check_op((lambda x: jnp.sin(x), lambda x: jnp.cos(x)), **claims)
    assert report.verdict == "passed" and verdict(report, "pullback") == "passed", str(report)
    report = check_op((lambda x: jnp.sin(x), lambda x: jnp.cos(2 * x)), **claims, checks=["pullback"])
    assert report.verdict == "failed"
