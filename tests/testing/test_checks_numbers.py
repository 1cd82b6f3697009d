"""The checks of numbers: right ops pass, and each check finds a wrong op that the others do not."""

import numpy as np
import pytest

import symgrad
from symgrad import func
from symgrad.autograd import Function
from symgrad.graph.op import REGISTRY
from symgrad.methods import extending
from symgrad.testing import check_op
from symgrad.testing.attack import Attack
from symgrad.testing.checks import CHECKS, numbers, run
from symgrad.testing.checks.differences import check_differences, extrapolated_derivative
from symgrad.testing.checks.measuring import compare
from symgrad.testing.checks.memory import check_aliasing
from symgrad.testing.claims import PROFILES, Profile
from symgrad.testing.failure import CheckFailure, Wrong
from tests.support.functions import saving

NUMBERS = ("value", "pullback", "pushforward", "second", "third", "special", "digits", "differences", "dtypes", "proof")
QUICK = PROFILES["dev"]._replace(examples=6)


@pytest.fixture
def declare():
    """Declare an op that acts on elements."""
    return lambda *rules, **rest: extending.elementwise("attacked", *rules, **rest)


def verdicts(op, names=NUMBERS, profile=QUICK, **claims):
    """The names of the checks that fail."""
    attack = Attack(op, profile=profile, **claims)
    return {name for name in names if run(CHECKS[name], attack).failure is not None}


class Third(Function):
    """-sin, with a derivative that is wrong."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return -symgrad.sin(x)

    @staticmethod
    def backward(ctx, g):
        return -1.25 * g * symgrad.cos(ctx.saved_tensors[0])


def test_an_opaque_op_is_compared_with_differences():
    assert verdicts(Third) == {"differences"}


@pytest.mark.sweep
def test_rules_that_lose_digits(declare):
    op = declare(lambda xp, x: xp.exp(x) - 1, lambda xp, y, x: xp.exp(x))
    assert verdicts(op, ("value", "digits", "pullback"), domain=(-1, 1)) == {"value", "digits"}
    assert verdicts(op, ("value", "digits", "pullback"), domain=(1, 2)) == set()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("slope, found", [(0.0, False), (0.25, False), (1.0, False), (1.5, True), (-0.5, True), (np.inf, True)])
def test_the_gradient_at_a_kink_lies_between(declare, slope, found):
    op = declare(lambda xp, x: xp.maximum(x, 0.0), lambda xp, y, x: xp.where(xp.eq(x, 0), slope, xp.indicator(xp.gt(x, 0), x)), special=((0.0,),))
    assert ("special" in verdicts(op, ("special",))) == found


@pytest.mark.sweep
def test_the_tangent_at_a_kink_is_finite_where_the_gradient_is(declare):
    def pushed(sign):
        return lambda xp, tangents, y, args: sign(tangents[0], xp.sign(args[0]))

    for sign, found in ((lambda t, s: t * s, set()), (lambda t, s: t / s, {"special"})):
        op = declare(lambda xp, x: xp.abs(x), lambda xp, y, x: xp.sign(x), jvp=pushed(sign), special=((0.0,),))
        assert verdicts(op, ("special", "pushforward", "adjoint")) == found


@pytest.mark.sweep
def test_a_tie_of_two_arguments_lies_in_the_hull(declare):
    def tied(slope):
        return lambda xp, y, a, b: xp.where(xp.eq(a, b), slope, xp.indicator(xp.gt(a, b), a))

    good = declare(lambda xp, a, b: xp.maximum(a, b), tied(0.25), lambda xp, y, a, b: 1 - tied(0.25)(xp, y, a, b), special=((1.0, 1.0),))
    assert verdicts(good, ("special",)) == set()
    bad = declare(lambda xp, a, b: xp.maximum(a, b), tied(1.0), lambda xp, y, a, b: xp.where(xp.eq(a, b), 1.0, 1 - tied(0.0)(xp, y, a, b)),
                  special=((1.0, 1.0),))
    assert verdicts(bad, ("special",)) == {"special"}


def test_a_dtype_that_does_not_stay():
    def double(x):
        return 2 * x.to(symgrad.float64)

    assert verdicts(double, ("dtypes", "value"), formula="2*x") == {"dtypes"}
    result = run(CHECKS["dtypes"], Attack(double, formula="2*x", profile=QUICK))
    assert "has the dtype float64" in result.reason


def test_small_types_are_measured_by_their_own_last_place(declare):
    op = declare(lambda xp, x: x * 1, lambda xp, y, x: 1 + 0 * x)
    attack = Attack(op, formula="x", dtypes=("float64", "float32"), profile=QUICK)
    inner = attack.subject.value
    attack.subject.value = lambda xs: inner([x.astype(np.float16).astype(x.dtype) if x.dtype == np.float32 else x for x in xs]) * (1 + 2e-3)
    with pytest.raises(Wrong):
        CHECKS["dtypes"].body(attack, attack.examples("low")[0])


@pytest.mark.sweep
def test_a_rule_that_is_refuted(declare):
    op = declare(lambda xp, x: xp.sin(x), lambda xp, y, x: xp.cos(x) + x / 1024)
    profile = QUICK._replace(effort=1.0)
    result = run(CHECKS["proof"], Attack(op, profile=profile))
    assert result.verdict == "failed" and "refuted" in result.reason
    assert run(CHECKS["proof"], Attack(op)).verdict == "not applicable"


def test_what_is_compared():
    attack = Attack(REGISTRY["exp"])
    x = [np.array([1.0, 2.0])]
    true = attack.truth.value(x)
    good = np.exp(x[0])
    compare(attack, "it", good, true, x)
    for bad, what in ((good[:1], "shape"), (good.astype(complex), "complex"), (good * (1 + 1e-12), "wrong"), (np.array([np.nan, 1.0]), "wrong"),
                      (np.array([np.inf, good[1]]), "wrong")):
        with pytest.raises(Wrong, match=what):
            compare(attack, "it", bad, true, x)
    with pytest.raises(Wrong) as raised:
        compare(attack, "it", good * [1, 1 + 1e-12], true, x)
    wrong = raised.value
    assert wrong.index == (1,) and wrong.order == 0 and 4000 < wrong.ulp < 6000
    assert "forward rule of exp" in wrong.exact and abs(wrong.true - good[1]) < 1e-14


def test_a_claimed_error_is_meant_literally():
    x = [np.array([600.0])]
    for claims, fails in (({}, False), ({"ulp": 8}, True), ({"ulp": {"float64": (8, 8)}}, True), ({"ulp": {"float32": 8}}, False)):
        attack = Attack(REGISTRY["exp"], **claims)
        found = np.exp(x[0]) * (1 + 100 * 2.0**-52)
        if fails:
            with pytest.raises(Wrong):
                compare(attack, "it", found, attack.truth.value(x), x)
        else:
            compare(attack, "it", found, attack.truth.value(x), x)


def test_beyond_the_range_only_the_direction_counts():
    attack = Attack(REGISTRY["exp"])
    x = [np.array([1000.0])]
    compare(attack, "it", np.array([np.inf]), attack.truth.value(x), x)
    for bad in (-np.inf, 1.0):
        with pytest.raises(Wrong):
            compare(attack, "it", np.array([bad]), attack.truth.value(x), x)
    x = [np.array([-740.0])]
    compare(attack, "it", np.array([0.0]), attack.truth.value(x), x)


@pytest.mark.sweep
@pytest.mark.parametrize("base, fails", [(1e91, False), (1e20, True)])
def test_derivatives_of_an_infinite_value_may_be_infinite(base, fails):
    """The second derivative a**(b - 1) (1 + b log a) is read from y log a: beyond 1e77 the value a**4 is infinite, and so may that be."""
    attack, (x, b) = Attack(REGISTRY["pow"]), (np.array([base]), np.array([4.0]))
    tangents = [None, np.ones(1)]
    true = attack.truth.gradient([x, b], np.ones(1), tangents)[0]
    given = ("it", np.array([np.inf]), true, [x, b], 0, np.ones(1), tangents)
    if fails:
        with pytest.raises(Wrong):
            compare(attack, *given)
    else:
        compare(attack, *given)


def test_differences_have_a_bound_of_their_error():
    h = 0.1 / 3.0 ** np.arange(9)
    steps = np.concatenate([[0.0], h, -h])
    for f in (np.abs, lambda x: np.floor(x), lambda x: np.sin(1e9 * x), lambda x: np.arctan(1e8 * x), lambda x: np.where(x > 0, np.nan, x)):
        assert extrapolated_derivative(f(steps), steps)[1] == np.inf
    found, bound = extrapolated_derivative(np.exp(steps), steps)
    assert abs(found - 1) <= bound < 1e-9


CANCELLING = {  # functions of tensors, of which nothing else is known, that lose digits of their values and not of their slopes
    "1 - cos(x)": (lambda x: 1 - symgrad.cos(x), [-1e-15, 1e-9, 0.001, -0.00098, 0.5]),
    "1 - exp(-x)": (lambda x: 1 - symgrad.exp(-x), [1e-12, 1e-8, 0.25]),
    "tanh(x) + 1": (lambda x: symgrad.tanh(x) + 1, [-100.0, -18.0, -10.0, 1.0]),
    "sqrt(1 + x*x) - 1": (lambda x: symgrad.sqrt(1 + x * x) - 1, [-1.9238e-8, -1e-15, 0.001, 2.0]),
    "log(1 + exp(x))": (lambda x: symgrad.log(1 + symgrad.exp(x)), [-100.0, -30.0, -20.0, 3.0]),
}


@pytest.mark.parametrize("name", CANCELLING)
def test_the_bound_of_differences_includes_digits_that_the_function_lost(name):
    function, points = CANCELLING[name]
    for x in points:
        assert check_differences(function, inputs=[np.array(x)]).verdict == "passed"

    Off = saving(lambda x: function(x), lambda g, x: (1 + 1e-6) * func.vjp(function, x)[1](g)[0], "Off")

    with pytest.raises(CheckFailure, match="not the limit of differences"):
        check_differences(Off, order=1, inputs=[np.array(points[-1])])


@pytest.mark.sweep
def test_differences_pass_over_ties_where_slopes_do_not_add_up():
    """The middle of three equal numbers has the same slope to both sides along every direction, and no derivative."""
    def middle(x):
        return symgrad.sort(x)[0][1]

    def first_of_all(x):
        return middle(x).detach() + x.sum() - x.sum().detach()

    tangents = [[np.array([1.0, -2.0, 0.5])]] * 3
    assert check_differences(middle, shapes=((3,),), inputs=[np.zeros(3)], tangents=tangents).verdict == "passed"
    with pytest.raises(CheckFailure, match="not the limit of differences"):
        check_differences(first_of_all, shapes=((3,),), inputs=[np.array([1.0, 2.0, 3.0])], tangents=tangents)


def test_differences_see_small_terms_beside_large_ones_that_cancel():
    x = np.array([[0.8403476957423663, 40.7, -21.533702587341242]] * 2)
    check_differences(REGISTRY["softmax"], parameters=((1,),), inputs=[x], cotangent=np.array([[-1.0, 1.0, -1.0], [1.0, -1.0, 1.0]]))


@pytest.mark.parametrize("op, claims", [
    pytest.param(symgrad.tanh, {}, id="an op"),
    pytest.param(saving(lambda x: x * x * x, lambda g, x: 3 * g * x * x, "Cube"), {"formula": "x**3", "domain": (-9, 9)}, id="a Function"),
    pytest.param(lambda a, b: a * b.exp(), {"formula": "a*exp(b)", "domain": (-9, 9)}, id="two arguments"),
    pytest.param(lambda x: x.softmax(-1), {"shapes": ((2, 3),)}, id="rows"),
    pytest.param(lambda a, b: a @ b, {"shapes": ((2, 3), (3, 2))}, id="matrices"),
    pytest.param(lambda x, p: (x.abs() ** p).sum(), {"shapes": ((4,),), "parameters": (2.5,)}, id="a parameter")])
def test_what_is_compiled_runs_as_a_program_whatever_was_checked_before(op, claims, monkeypatch):
    """The function that is compiled refers to the op alone, and not to what the other checks have remembered of it."""
    made = []
    monkeypatch.setattr(numbers, "compile", lambda *args, **kwargs: made.append(symgrad.compile(*args, **kwargs)) or made[-1])
    report = check_op(op, **claims, profile=Profile("brief", 5, 3, 0.0), checks=["value", "second", "special", "structure", "dtypes", "compiled"])
    assert {r.check: r.verdict for r in report.results}["compiled"] == "passed"
    assert len(made) >= 3 and all(c.report.programs and not c.report.uncompiled for c in made)


CALLS = []


def counting(x):
    CALLS.append(None)
    return x * 2


@pytest.mark.parametrize("op, claims", [(lambda x: x.sort().values, {"shapes": ((4,),)}), (counting, {"formula": "2*x"})])
def test_what_is_not_compiled_has_not_passed(op, claims):
    (result,) = check_op(op, **claims, checks=["compiled"]).results
    assert result.verdict == "not applicable" and "it is not compiled" in result.reason


POWERS = {"formula": "a**b", "domain": {"a": (0, 30), "b": (-9, 9)}}


@pytest.mark.parametrize("op, claims", [
    (REGISTRY["pow"], {}), (lambda a, b: a ** b, POWERS), (lambda a, b: a * a ** b, {**POWERS, "formula": "a**(b + 1)"}),
    (lambda a, b: -(a ** b), {**POWERS, "formula": "-a**b"}),
    (lambda a, b: symgrad.pow(b, a), {"formula": "b**a", "domain": {"b": (0, 30), "a": (-9, 9)}})])
def test_whole_numbers_to_a_negative_power_are_none(op, claims):
    """An op whose results are whole for whole arguments is right where they are."""
    assert run(CHECKS["dtypes"], Attack(op, profile=QUICK, **claims)).verdict == "passed"


@pytest.mark.parametrize("wrong", [lambda y, b: y + 1, lambda y, b: -y, lambda y, b: symgrad.where(b > 1, y + 1, y), lambda y, b: 2 * y,
                                   lambda y, b: y * b])
def test_powers_of_whole_numbers_are_compared(wrong):
    def op(a, b):
        return a ** b if a.is_floating_point() or b.is_floating_point() else wrong(a ** b, b)

    result = run(CHECKS["dtypes"], Attack(op, profile=QUICK, **POWERS))
    assert result.verdict == "failed" and "int64" in result.reason


@pytest.mark.parametrize("op", [REGISTRY["pow"], lambda a, b: a ** b, lambda a, b: -(a ** b), lambda a, b: 1 - a ** b, lambda a, b: a / b])
@pytest.mark.parametrize("x, g", [(2e-308, -3.0), (5e-308, 7.0), (1e-160, 1.0)])
def test_parts_that_overflow_are_not_summed(op, x, g):
    """One tensor given twice has the sum of the derivatives by two, unless these are beyond the range of floats."""
    claims = {} if op is REGISTRY["pow"] else {"elementwise": True, "domain": (0, np.inf)}
    assert check_aliasing(op, **claims, inputs=[np.array(x)] * 2, cotangent=np.array(g)).verdict == "passed"
