"""`symgrad ghostwrite`: the test file of an op, derived from its source and docstring."""

import ast
import importlib
import sys

import pytest

import symgrad
from symgrad.cli import AGREED, BAD_INPUT, main
from symgrad.testing import check_op
from symgrad.testing.claims import MARK
from symgrad.testing.ghostwriting import _docstring_formulas, _finite_domain, _is_formula_of, ghostwrite

pytest_plugins = "pytester"

OPS = '''
import numpy as np
import symgrad
from symgrad.testing import op

CALLED = []

def softplus(x, sharpness=1.0):
    """log(1 + exp(x)), without overflow."""
    CALLED.append(x)
    return symgrad.log1p(symgrad.exp(x))

def entropy(p):
    """The entropy f(p) = -p*log(p) of an outcome."""
    return -p * np.log(p)

def entropy_gradient(p):
    return -np.log(p) - 1

def plain(a, b):
    """Something of a and b."""
    return a * b * 1.0

@op(formula="2*x")
def marked(x):
    return x + x

class Square(symgrad.autograd.Function):
    """The square `x**2`."""
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]

bump = symgrad.elementwise("ghost_bump", lambda xp, x: xp.exp(-x * x), lambda xp, y, x: -2 * x * y)
root = symgrad.elementwise("ghost_root", lambda xp, a, b: xp.sqrt(a) * b, lambda xp, y, a, b: 0.5 * b / xp.sqrt(a), lambda xp, y, a, b: xp.sqrt(a),
                           domain=(symgrad.graph.domains.POSITIVE, symgrad.graph.domains.REAL), special=((1.0, 0.0),))
soft = symgrad.op_from_sympy("ghost_soft", "x/(1 + abs(x))", check=False)
number = 1.0
sine = np.sin
'''


@pytest.fixture(scope="module")
def ops(tmp_path_factory):
    """The name of a module with ops, which is imported once."""
    folder = tmp_path_factory.mktemp("ghost")
    (folder / "ghost_ops.py").write_text(OPS)
    sys.path.insert(0, str(folder))
    check_op(importlib.import_module("ghost_ops").plain, checks=["linearity"])  # what is imported inside a run of pytest is forgotten after it
    yield "ghost_ops"
    sys.path.remove(str(folder))
    del sys.modules["ghost_ops"]


def claims(text):
    """The claims that a file makes, as they are written."""
    (call,) = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call) and ast.unparse(n.func) == "symgrad.testing.op"]
    return {k.arg: ast.unparse(k.value) for k in call.keywords}


FOUND = {
    "softplus": {"formula": "'log(1 + exp(x))'", "domain": "{'x': 'real'}"},
    "entropy": {"formula": "'-p*log(p)'", "domain": "{'p': 'positive'}", "gradient": "{module}.entropy_gradient"},
    "plain": {"domain": "{'a': 'real', 'b': 'real'}"},
    "Square": {"formula": "'x**2'", "domain": "{'x': 'real'}"},
    "bump": {"formula": "'exp(-x**2)'", "domain": "{'x': 'real'}"},
    "root": {"formula": "'sqrt(a)*b'", "domain": "{'a': 'positive', 'b': 'real'}", "special": "[(1.0, 0.0)]"},
    "soft": {"formula": "'input/(abs(input) + 1)'", "domain": "{'input': 'real'}"},
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found(ops, name):
    text = ghostwrite(f"{ops}:{name}")
    assert claims(text) == {k: v.replace("{module}", ops) for k, v in FOUND[name].items()}
    assert f"\n{name} = symgrad.testing.op(\n" in text and text.endswith(f"\n)({ops}.{name})\n") and max(map(len, text.splitlines())) <= 150
    assert sys.modules[ops].CALLED == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["softplus", "entropy", "plain", "marked", "Square", "bump", "root", "soft"])
def test_what_is_written_runs_at_once(ops, pytester, name):
    pytester.makepyfile(test_written=ghostwrite(f"{ops}:{name}"))
    pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "--symgrad-checks=linearity").assert_outcomes(passed=1)
    if name != "marked":
        delattr(getattr(sys.modules[ops], name), MARK)


def test_given_formulas_and_domains_precede_found_ones(ops):
    found = claims(ghostwrite(f"{ops}:softplus", formula="logaddexp(0, x)", domain="-1..1"))
    assert found == {"formula": "'logaddexp(0, x)'", "domain": "{'x': '-1..1'}"}
    assert claims(ghostwrite(f"{ops}:plain", domain="b=positive"))["domain"] == "{'a': 'real', 'b': 'positive'}"


def test_an_op_that_is_marked_is_imported(ops):
    text = ghostwrite(f"{ops}:marked")
    assert f"from {ops} import marked" in text and "symgrad.testing.op(" not in text
    with pytest.raises(ValueError, match="says itself, by symgrad.testing.op, what it claims; change it there, and leave out --formula"):
        ghostwrite(f"{ops}:marked", formula="2*x")


def test_objects_without_attributes_are_wrapped_in_a_function():
    text = ghostwrite("math:sqrt")
    assert "def sqrt(x):\n    return math.sqrt(x)\n" in text and claims(text)["domain"] == "{'x': 'real'}"


def test_a_name_that_the_module_has_gets_another():
    assert "\ntanh_op = symgrad" not in ghostwrite("symgrad:tanh")
    sys.modules["ghost_same"] = type(sys)("ghost_same")
    try:
        sys.modules["ghost_same"].ghost_same = lambda x: symgrad.sin(x)
        assert "\nghost_same_op = symgrad.testing.op(" in ghostwrite("ghost_same:ghost_same")
    finally:
        del sys.modules["ghost_same"]


def test_other_frameworks_are_named(monkeypatch):
    """By the names in the code; the frameworks need not be installed."""
    module = type(sys)("ghost_foreign")
    module.loss = lambda x: x
    monkeypatch.setitem(sys.modules, "ghost_foreign", module)
    monkeypatch.setattr("symgrad.testing.ghostwriting.framework_of", lambda thing: "jax")
    assert claims(ghostwrite("ghost_foreign:loss"))["framework"] == "'jax'"


@pytest.mark.parametrize("doc, formula", [
    ("log(1 + exp(x)), without overflow.", "log(1 + exp(x))"), ("The function f(x) = x*exp(-x) of Ricker.", "x*exp(-x)"),
    ("Computes `x**2 + 1`.", "x**2 + 1"), ("x*tanh(x) for positive x", "x*tanh(x)"), ("y = sin(x) / x\n\nMore.", "sin(x) / x"),
    ("Returns 2 * x", "2 * x"), ("The ramp: x*(1 + x), of x.", "x*(1 + x)"), ("alpha + x*2", None), ("less than x", None),
    ("exp(t), a function of x", None), ("Something of x.", None), ("x", None), ("exec('x')", None), ("", None)])
def test_formulas_in_docstrings(doc, formula):
    assert next((t for t in _docstring_formulas(doc) if _is_formula_of(t, {"x"})), None) == formula


@pytest.mark.parametrize("formula, domain", [
    ("x**2", "real"), ("1/x", "nonzero"), ("sqrt(x)", "nonnegative"), ("log(x)", "positive"), ("asin(x)", "-1..1"), ("atanh(x)", "(-1, 1)"),
    ("log1p(x)", "(-1, inf)"), ("acosh(x)", "[1, inf)"), ("log(-x)", "negative"), ("log(log(x))", "(1, inf)")])
def test_domains_of_formulas(formula, domain):
    assert dict(_finite_domain(formula)) == {"x": domain}


# The command


@pytest.mark.sweep
def test_the_text_is_printed_and_a_file_is_not_written_over(ops, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["ghostwrite", f"{ops}:bump"]) == AGREED
    printed = capsys.readouterr().out
    assert printed == ghostwrite(f"{ops}:bump", file="test_bump.py")
    assert main(["ghostwrite", f"{ops}:bump", "-o", "test_it.py"]) == AGREED
    assert capsys.readouterr().out == "test_it.py is written; run it with: pytest test_it.py\n"
    path = tmp_path / "test_it.py"
    assert "    pytest test_it.py\n" in path.read_text()
    path.write_text("mine")
    assert main(["ghostwrite", f"{ops}:bump", "-o", "test_it.py"]) == BAD_INPUT
    assert path.read_text() == "mine" and "test_it.py is there already; name another file, or write over it with --force" in capsys.readouterr().err
    assert main(["ghostwrite", f"{ops}:bump", "-o", "test_it.py", "--force"]) == AGREED
    assert path.read_text() == printed.replace("test_bump.py", "test_it.py")


@pytest.mark.parametrize("arguments, said", [
    (["no_such_module:f"], "there is no module 'no_such_module'; go to the folder it is in, or install it"),
    (["{ops}"], "names a module; write {ops}:FUNCTION for the op in it"),
    (["{ops}:nothing"], "{ops} has no 'nothing'; in it there are: marked, bump, root, soft"),
    (["{ops}:number"], "is of type float; name a function, or a class with apply"),
    (["{ops}.py:bump"], "'{ops}.py:bump' is a file; name its module as Python imports it, such as {ops}:bump"),
    (["__import__('os'):f"], "is not the name of a module"),
    (["{ops}:bump", "--formula", "__import__('os')"], "cannot read the formula: there is no function '__import__'"),
    (["{ops}:bump", "--domain", "z=positive"], "domain names z, but the arguments are x"),
    (["{ops}:bump", "--domain", "everywhere"], "the domain of x is 'everywhere'; expected a pair (low, high)"),
    (["{ops}:bump", "-o", "no/such/folder/test_it.py"], "No such file or directory"),
    (["{ops}:bump", "-o", "."], ". is there already; name another file in it"),
])
def test_bad_input(ops, capsys, arguments, said):
    assert main(["ghostwrite", *(a.format(ops=ops) for a in arguments)]) == BAD_INPUT
    assert said.format(ops=ops) in capsys.readouterr().err


FITTING = '''
import symgrad

def product(a, b):
    return symgrad.matmul(a, b)

def layer(x, weight, bias):
    return symgrad.tanh(x @ weight.T + bias)

def added(a, b):
    return symgrad.sin(a) + b

def strange(a, b):
    if a.shape != (7, 2):
        raise ValueError("seven rows are needed")
    return symgrad.matmul(a, b)
'''


@pytest.fixture(scope="module")
def fitting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitting")
    (folder / "ghost_fitting.py").write_text(FITTING)
    sys.path.insert(0, str(folder))
    importlib.import_module("ghost_fitting")
    yield "ghost_fitting"
    sys.path.remove(str(folder))
    del sys.modules["ghost_fitting"]


@pytest.mark.parametrize("name, shapes", [("product", "((2, 3), (3, 4))"), ("layer", "((2, 3), (4, 3), (4,))"), ("added", None)])
def test_shapes_of_arguments_that_must_fit_are_found_by_calls(fitting, pytester, name, shapes):
    text = ghostwrite(f"{fitting}:{name}")
    assert claims(text).get("shapes") == shapes
    pytester.makepyfile(test_written=text)
    pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "--symgrad-checks=linearity").assert_outcomes(passed=1)
    delattr(getattr(sys.modules[fitting], name), MARK)


def test_shapes_that_are_not_found_are_left_as_a_proposal(fitting):
    text = ghostwrite(f"{fitting}:strange")
    assert "shapes" not in claims(text)
    assert "    # shapes=((3, 4), (3, 4)),  # an array of each shape for a, b; none of those that were tried fit each other\n" in text
