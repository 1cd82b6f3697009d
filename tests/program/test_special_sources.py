"""Special functions as `to_python` and `to_c` write them: every row of the table, with its parameters, has the numbers of the op."""

import pytest

import symgrad
from symgrad.carriers.special.table import SPECIAL
from symgrad.codegen.languages import C, NumPy
from symgrad.graph.op import REGISTRY
from tests.support.c_interpreter import compiled
from tests.support.exemptions import exempt
from tests.support.special_sources import CASES, ORDERS, check, generic_cases, written

WRITTEN = [case for case in CASES if case[0] not in exempt("source") or written(NumPy, *case) is not None]


@pytest.mark.sampled(29)
@pytest.mark.parametrize(("name", "parameters"), WRITTEN)
def test_numpy(name, parameters):
    check(NumPy, name, parameters)


@pytest.mark.sampled(29)
@pytest.mark.parametrize(("name", "parameters"), WRITTEN)
def test_c(name, parameters):
    check(C, name, parameters)


GENERIC = [*generic_cases()]
BRIEF = [case for case in GENERIC if case[1][0] not in ORDERS[2:] or not case[0].startswith("bessel_")][::2]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("language", [NumPy, C])
@pytest.mark.parametrize(("name", "parameters"), BRIEF)
def test_generic_parameters(language, name, parameters):
    """In C the parameters are a part of the name of a function, which must be an identifier for fractions and negative numbers, too."""
    check(language, name, parameters, count=2)


@pytest.mark.sweep
@pytest.mark.parametrize("language", [NumPy, C])
@pytest.mark.parametrize(("name", "parameters"), GENERIC)
def test_all_generic_parameters(language, name, parameters):
    check(language, name, parameters, count=5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("order", [1 / 3, 17 / 4, -7.2, 8])
@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kv"])
def test_bessel_functions_of_any_order_in_c(name, order):
    """As a user writes them, with derivatives, which have other orders."""
    def f(x):
        return getattr(symgrad.special, name)(order, x)

    at, found = symgrad.tensor(2.9), ([0.0], [0.0], [0.0])
    compiled(symgrad.to_c(f, at=[2.9], derivatives=2, name="f"))["f"](2.9, *found)
    expected = [f(at).item(), symgrad.func.grad(f)(at).item(), symgrad.func.hessian(f)(at).item()]
    assert [*map(float, (v for (v,) in found))] == pytest.approx(expected, rel=1e-11)


@pytest.mark.sweep
@pytest.mark.parametrize("language, write", [(NumPy, symgrad.to_python), (C, symgrad.to_c)])
def test_what_has_no_source_is_refused_with_a_remedy(language, write):
    assert {name for name, parameters in CASES if written(language, name, parameters) is None} == exempt("source")
    with pytest.raises(TypeError, match=f"gammainc_derivative2 cannot be written here.*no source in {language.__name__}.*symgrad.compile runs it"):
        write("gammainc(a, x)", derivatives=2)


def test_a_helper_of_c_is_written_once_and_only_where_it_is_called():
    assert symgrad.to_c("log_ndtr(x) + erfinv(y) + erfcx(x)").count("static double symgrad_erfcx_derivative_0(double x)") == 1
    assert "symgrad_" not in symgrad.to_c("exp(x)")


def test_every_special_function_is_an_op():
    assert not SPECIAL.keys() - REGISTRY.keys()


def test_a_wrong_source_is_found():
    class Wrong(NumPy):
        ops = NumPy.ops | {"erf": "9 np.tanh({0})"}

    with pytest.raises(AssertionError, match="erf"):
        check(Wrong, "erf", ())
