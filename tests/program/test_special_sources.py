"""Special functions as `to_python` and `to_c` write them: every row of the table, with its parameters, has the numbers of the op."""

import pytest

import symgrad
from symgrad.carriers.special.table import SPECIAL
from symgrad.codegen.languages import C, NumPy
from symgrad.graph.op import REGISTRY
from tests.support.exemptions import exempt
from tests.support.special_sources import CASES, check, written

WRITTEN = [case for case in CASES if case[0] not in exempt("source") or written(NumPy, *case) is not None]


@pytest.mark.parametrize(("name", "parameters"), WRITTEN)
def test_numpy(name, parameters):
    check(NumPy, name, parameters)


@pytest.mark.parametrize(("name", "parameters"), WRITTEN)
def test_c(name, parameters):
    check(C, name, parameters)


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
