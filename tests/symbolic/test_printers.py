"""Printed source is executed and compared with the function: NumPy source with NumPy, C source with a small interpreter."""

import ast
import itertools
import math
import re

import numpy as np
import pytest
import sympy
from hypothesis import given, settings

import symgrad
from symgrad import func, tensor
from symgrad.carriers.special.table import SPECIAL
from symgrad.codegen.equations import equations_of
from symgrad.codegen.languages import C, Jax, NumPy, Torch
from symgrad.codegen.printers import to_latex
from symgrad.codegen.sources import to_c, to_jax, to_python, to_torch
from symgrad.engine.traced import core
from symgrad.graph.op import REGISTRY
from symgrad.symbolic.programs import OpProgram, OpStep, Place
from tests.ops.test_compositions import POINTS, formula, trees, value
from tests.support.c_interpreter import compiled
from tests.support.points import examples, of_numbers, points
from tests.support.sources import check_refused

X, Y, Z = sympy.symbols("x y z")


def named(value):
    """The id of a parameter in a test name; functions have no stable repr."""
    return value if isinstance(value, str) else value.__name__ if isinstance(value, type) else ""


CASES = [pytest.param(op, parameters, id=f"{op.name}{parameters}") for op in REGISTRY.values()
         if op.kind == "elementwise" and op.differentiable and of_numbers(op) for parameters in examples(op)]


def run(source, name="f"):
    """The function defined by generated source, which contains only imports and functions."""
    tree = ast.parse(source)
    assert all(isinstance(node, (ast.Import, ast.FunctionDef)) for node in tree.body)
    names = {}
    exec(compile(tree, "source", "exec"), names)
    return names[name]


def helmholtz(x, y, w):
    """A function with common subexpressions, a product with an array, a selection and a power."""
    s = (x * y).sin()
    return (w * w).sum() * s.exp() + symgrad.where(x > y, s.sinh(), s / 3) + (1 + x * x) ** 1.5 - s.sigmoid() * w[1]


AT = (0.7, -0.3, [0.4, 1.25])


def truth(function, *at):
    """The value, the gradient and the Hessian."""
    xs = [tensor(v) for v in at]
    every = tuple(range(len(xs)))
    return function(*xs).numpy(), [g.numpy() for g in func.grad(function, every)(*xs)], \
        [[h.numpy() for h in row] for row in func.jacfwd(func.grad(function, every), every)(*xs)]


@pytest.mark.sweep
def test_c_source_agrees_in_value_gradient_and_hessian():
    f, gradient, hessian = truth(helmholtz, *AT)
    assert compiled(to_c(helmholtz, (), (), 2, name="f"))["f"](*AT) == pytest.approx(f, rel=1e-15)
    value, g, h = [0.0], [0.0] * 4, [0.0] * 16
    source = to_c(helmholtz, (), (), 2, derivatives=2, name="f")
    assert "void f(double x, double y, const double *w, double *value, double *gradient, double *hessian)" in source
    compiled(source)["f"](*AT, value, g, h)
    assert value[0] == pytest.approx(f, rel=1e-15)
    np.testing.assert_allclose(g, np.concatenate([np.ravel(v) for v in gradient]), rtol=4e-15)
    whole = np.block([[np.reshape(b, (np.size(gradient[i]), np.size(gradient[k]))) for k, b in enumerate(row)] for i, row in enumerate(hessian)])
    np.testing.assert_allclose(np.reshape(h, (4, 4)), whole, rtol=2e-14, atol=1e-15)


def written(write, function, at):
    """The value and the gradient of a function in NumPy or C; None if they are refused for a special function whose row has no source there."""
    try:
        source = write(function, at=at, derivatives=1, name="f")
    except TypeError as error:
        check_refused(error, C if write is to_c else NumPy)
        return None
    return compiled(source)["f"] if write is to_c else run(source)


STEEP = ("bessel_j", "bessel_y", "airy", "fresnel")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("op, parameters", CASES)
def test_every_op_is_written_in_numpy_and_c(op, parameters):
    call = core(op)
    at = points(op, np.random.default_rng(1), 12, 20)
    numpy_function = written(to_python, lambda *xs: call(*xs, *parameters), at[0])
    c_function = written(to_c, lambda *xs: call(*xs, *parameters), at[0])
    for x in at:
        xs = [tensor(v, requires_grad=True) for v in x]
        y = call(*xs, *parameters)
        slopes = symgrad.autograd.grad(y, xs, materialize_grads=True, create_graph=op.name.startswith(STEEP))
        # for functions that oscillate or decay fast, x times the second derivative, which is up to π for sinc
        steep = abs(x[0] * symgrad.autograd.grad(slopes[0], xs)[0].item()) if op.name.startswith(STEEP) else \
            math.pi if op.name == "sinc_derivative" and abs(x[0]) > 1 else 0.0
        steep = steep if math.isfinite(steep) else 0.0
        slopes = [g.item() for g in slopes]
        condition = sum(abs(a * b) for a, b in zip(x, slopes))
        with np.errstate(all="ignore"):
            v, g = numpy_function(*map(np.float64, x)) if numpy_function else (None, ())
        value, gradient = [0.0], [0.0] * len(x)
        if c_function:
            c_function(*x, value, gradient)
        for found in [(v, *g)] * bool(numpy_function) + [(*value, *gradient)] * bool(c_function):
            for k, (a, b) in enumerate(zip(found, (y.item(), *slopes))):
                size = max(abs(b), steep if k else condition if math.isfinite(condition) else 0.0, 2.3e-308)
                near = abs(a - b) <= 16 * np.spacing(size) if math.isfinite(b) else not abs(a) < 1e300
                assert near, f"{op.name}{parameters} at {x}: number {k} is {a!r}, not {b!r}"


REMOVABLE = {"sinc": lambda x: x.sinc(), "spherical_bessel_j0": lambda x: symgrad.special.spherical_bessel_j0(x)}
AROUND = {"alone": lambda f: f, "chosen": lambda f: lambda x: symgrad.where(x < 0.1, f(x), x * x), "kept": lambda f: lambda x: (f(x) - 1 / 3).relu(),
          "times a selection": lambda f: lambda x: f(x) * (1 / 3 - x).relu(), "of a selection": lambda f: lambda x: f((x - 0.1).relu())}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", REMOVABLE)
def test_derivatives_keep_their_digits_next_to_a_removable_point(name, around):
    """A formula such as (cos x - sin(x)/x)/x, which is 0 at 0 alone, is no choice of which the branches are written each."""
    f = AROUND[around](REMOVABLE[name])
    of_numpy, of_c = run(to_python(f, derivatives=2, name="f")), compiled(to_c(f, derivatives=2, name="f"))["f"]
    for at in (1.3e-5, -1 / 3e6, 1e-9, 0.0, 7e-3, 0.11, -2 / 7):
        expected = [f(tensor(at)).item(), func.grad(f)(tensor(at)).item(), func.hessian(f)(tensor(at)).item()]
        found = [0.0], [0.0], [0.0]
        of_c(at, *found)
        y, (g,), ((h,),) = of_numpy(np.float64(at))
        np.testing.assert_allclose([[float(y), float(g), float(h)], np.ravel(found)], [expected, expected], rtol=4e-15, atol=1e-16, err_msg=str(at))


@pytest.mark.parametrize("yes, no", [*itertools.product((sympy.true, sympy.false, "low"), repeat=2)])
def test_conditions_that_are_known_are_written(yes, no):
    """C99 has no name for a truth value without a further header."""
    x = sympy.Symbol("x", real=True)
    branches = [x < -1 if branch == "low" else branch for branch in (yes, no)]
    formula = sympy.Piecewise((x**2, sympy.ITE(x > 0, *branches, evaluate=False)), (sympy.sin(x), True), evaluate=False)
    source = to_c(formula, name="f")
    assert not re.search("true|false", source)
    for at in (-1.7, -0.3, 0.4):
        expected = float(formula.subs(x, sympy.Rational(at)).evalf())
        assert [compiled(source)["f"](at), run(to_python(formula, name="f"))(np.float64(at))] == pytest.approx([expected] * 2, rel=1e-15)


@pytest.mark.sweep
@settings(max_examples=25)
@given(trees(3), POINTS, POINTS)
def test_random_compositions_are_written(tree, x, y):
    def function(x, y):
        return value(tree, x, y)

    expected = function(tensor(x), tensor(y)).item()
    source = to_python(formula(tree), symbols=[sympy.Symbol("x", real=True), sympy.Symbol("y", real=True)], name="f")
    c_source = to_c(function, (), (), name="f")
    for found in (run(source)(np.float64(x), np.float64(y)), run(to_python(function, name="f"))(np.float64(x), np.float64(y)),
                  compiled(c_source)["f"](x, y)):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9) or not math.isfinite(expected)


@pytest.mark.sweep
@pytest.mark.parametrize("write", [to_python, to_torch, to_jax, to_c])
def test_a_shared_expression_is_written_once_and_length_is_linear(write):
    def deep(x, n=12):
        for _ in range(n):
            x = (x * x + 1).sin() + x / 3
        return x

    lengths = [len(write(lambda x, n=n: deep(x, n), derivatives=1)) for n in (40, 80)]
    assert lengths[1] < 2.2 * lengths[0] < 20_000
    assert write(deep).count("sin(") == 12 and write(sympy.sin(X) + sympy.sin(X) ** 2).count("sin(") == 1


OPERATIONS = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b if b else 1.0,
              "neg": lambda a: -a, "square": lambda a: a * a, "where": lambda a, b: a if a > b else b}


@pytest.mark.sweep
@pytest.mark.parametrize("language, head, tail", [
    (NumPy, "import numpy as np\n\ndef f(x, y):\n    ", "\n"),
    (C, "#include <math.h>\n\ndouble f(double x, double y)\n{\n    ", ";\n}\n")], ids=["numpy", "c"])
def test_parentheses_are_written_where_they_are_needed(language, head, tail):
    start = [OpStep("input", value=Place(0, ())), OpStep("input", value=Place(1, ())), OpStep("constant", value=sympy.Rational(-3, 2)),
             OpStep("constant", value=sympy.Integer(-1))]
    for outer, left, right in itertools.product(OPERATIONS, [*OPERATIONS, 0, 2], [*OPERATIONS, 1, 3]):
        program, values = OpProgram(list(start)), {0: 0.75, 1: -1.25, 2: -1.5, 3: -1.0}

        def add(op, *operands, program=program, values=values):
            operands = operands[:1 if op in ("neg", "square") else 2]
            value = OPERATIONS[op](*map(values.get, operands))
            if op == "where":
                program.steps.append(OpStep("gt", operands))
                operands = (len(program.steps) - 1, *operands)
            program.steps.append(OpStep(op, operands))
            values[len(program.steps) - 1] = value
            return len(program.steps) - 1

        program.outputs = [add(outer, left if isinstance(left, int) else add(left, 0, 2), right if isinstance(right, int) else add(right, 3, 1))]
        printer = language(program, ["x", "y"], [(), ()])
        text = head + "\n    ".join([*printer.lines, f"return {printer.texts[-1]}"]) + tail
        f = run(text) if language is NumPy else compiled(text)["f"]
        assert f(0.75, -1.25) == pytest.approx(values[program.outputs[0]], rel=1e-12), text


def test_elements_of_matrices_keep_their_positions():
    def f(a):
        return a[0, 1] * 10 + a[1, 0] * 100 + a[1, 2]

    a = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert run(to_python(f, (2, 3), name="f"))(np.array(a)) == 426.0 and compiled(to_c(f, (2, 3), name="f"))["f"](sum(a, [])) == 426.0


def test_source_of_numpy_runs_over_arrays():
    f = run(to_python(sympy.Max(X, Y, 0) + sympy.log(1 + sympy.exp(X)) + sympy.Piecewise((1, X > 1), (Y, True)), name="f"))
    with np.errstate(all="ignore"):
        assert f(np.array([1000.0, -1000.0]), 0.5).tolist() == [2001.0, 1.0]
    stacked = run(to_python(sympy.Matrix([[X, 1], [2, X * Y]]), name="f"))(np.array([1.0, 2.0, 3.0]), 2.0)
    assert stacked.shape == (3, 2, 2) and stacked[2].tolist() == [[3.0, 1.0], [2.0, 6.0]]
    tree = run(to_python(lambda w: {"a": w.softmax(0), "b": [w.sum(), 2.5, None]}, 3, name="f"))(np.array([1000.0, 1000.0, 0.0]))
    np.testing.assert_allclose(tree["a"], [0.5, 0.5, 0.0])
    assert tree["b"] == [2000.0, 2.5, None]


def test_branches_are_written_with_their_conditions():
    f = run(to_python(lambda x: x**2 if x > 1 else -x, at=[3.0], name="f"))
    assert f(2.0) == 4.0 and np.isnan(f(0.0))
    g = compiled(to_c(lambda x: x**2 if x > 1 else -x, at=[3.0], name="f"))["f"]
    assert g(2.0) == 4.0 and math.isnan(g(0.0))


def test_numbers_are_written_with_all_their_digits():
    source = to_python(sympy.Rational(1, 3) ** X + 0.1 * X + sympy.pi * X + sympy.sqrt(2) * Y + 10**30 * Y, name="f")
    assert "np.pi" in source and "1 / 3" in source and "1.4142135623730951" in source and "0.1 *" in source
    assert compiled(to_c(sympy.pi * X / 3, name="f"))["f"](3.0) == math.pi and "2.0" in to_c(2 * X)
    assert to_c(sympy.Piecewise((X, X > 0), (sympy.oo, True))).count("INFINITY") == 1 and "NAN" in to_c(sympy.Piecewise((X, X > 0)))
    with pytest.raises(TypeError, match="complex, and C's double is real"):
        to_c(sympy.I * X)


def test_names_are_identifiers_and_never_code():
    evil = sympy.Symbol('"""\nimport os\nos.abort()') * sympy.Symbol("np") * sympy.Symbol("exp") * sympy.Symbol("lambda")
    evil = evil * sympy.exp(sympy.Symbol("v1"))
    for write in (to_python, to_torch, to_jax):
        source = write(evil + sympy.exp(sympy.Symbol("v1")), name="f")
        assert "abort()" not in source and '"""' not in source
        run_names = ast.parse(source).body[-1].args.args
        assert len({a.arg for a in run_names}) == 5 and all(a.arg.isidentifier() and a.arg not in ("np", "torch", "jnp") for a in run_names)
    f = run(to_python(evil, name="f"))
    assert f(1.0, 2.0, 3.0, 5.0, 0.0) == 30.0
    assert compiled(to_c(evil, name="f"))["f"](1.0, 2.0, 3.0, 5.0, 0.0) == 30.0
    for name in ("a b", "import", "f(): pass\n", 3, "é", "double", "exp"):
        with pytest.raises(ValueError, match="named by an identifier"):
            to_python(X, name=name)


def test_all_languages_have_the_same_ops():
    common = NumPy.ops.keys() - NumPy.special[0].keys()
    assert common - set(Torch.ops) == set() and common - set(Jax.ops) == set()
    assert common - set(C.ops) == {"conj", "real", "imag", "angle"}


@pytest.mark.parametrize("language", [NumPy, Torch, Jax, C])
def test_a_special_function_is_written_in_the_languages_of_its_row(language):
    for name, row in SPECIAL.items():
        python = "Python" in row.sources or language is NumPy and isinstance(row.arrays, str)
        assert (name in language.ops) == (language.__name__ in row.sources or python), name
    assert {"erf", "erfc", "erf_slope"} <= set(language.ops)


def test_latex():
    assert to_latex(X**2 / 3) == r"\frac{x^{2}}{3}" and to_latex(tensor(2.0, symbol="x").exp()) == "e^{x}"
    assert to_latex(lambda w: w * 2, 2) == r"\left[\begin{matrix}2 w_{0}\\2 w_{1}\end{matrix}\right]"
    assert to_latex("x**2") == "x^{2}" and r"\begin{cases}" in to_latex(lambda x: x if x > 0 else -x)
    assert to_latex(lambda x: (x, 2 * x), name="g") == "\\begin{aligned}\ng_{1} &= x \\\\\ng_{2} &= 2 x\n\\end{aligned}"
    second = to_latex(lambda x, y: x**2 * y, derivatives=2, name="g")
    assert r"\frac{\partial^{2} g}{\partial x \partial y} &= 2 x" in second and r"\frac{\partial^{2} g}{\partial x^{2}} &= 2 y" in second


@pytest.mark.sweep
def test_long_formulas_are_written_as_small_equations():
    def long(x):
        for _ in range(60):
            x = (x * x + 1).sin() + x / 3
        return x

    text = to_latex(long)
    assert text.startswith("\\begin{aligned}\nv_{1} &= x^{2} \\\\") and text.count("&=") > 200 and len(text) < 30_000
    assert len(equations_of(long, derivatives=1).equations) < 800


@pytest.mark.parametrize("call, error, words", [
    (lambda: to_python(lambda x: (x, x), derivatives=1), ValueError, "of one real number"),
    (lambda: to_python(X, derivatives=3), ValueError, "0, 1 .the"),
    (lambda: to_python(lambda w: w, 2, derivatives=1), ValueError, "return a sum"),
    (lambda: to_python(lambda x: x, symbols=[X]), TypeError, "symbols="),
    (lambda: to_python(tensor(1.0, symbol="x"), derivatives=1), TypeError, "a Tensor is one value"),
    (lambda: to_python(sympy.mathieus(1, 2, X)), TypeError, "no op computes mathieus"),
    (lambda: to_python(lambda x: float(x) * x), ValueError, "no one formula"),
    (lambda: to_python(lambda x: {(1, 2): x}), TypeError, "returns a dict"), (lambda: to_latex(3), TypeError, "expected a function")], ids=named)
def test_unsupported_formulas_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_the_interpreter_of_c_refuses_unsupported_code():
    for source in ("double f(double x)\n{\n    return x;\n}\n", "#include <math.h>\n\nint x;\n"):
        with pytest.raises(AssertionError):
            compiled(source)
    assert compiled("#include <math.h>\n\ndouble f(double x)\n{\n    return x > 1.0 && !(x == 3.0) ? -x * 2.0 - 1.0 : x;\n}\n")["f"](2.0) == -5.0
    with pytest.raises(AssertionError, match="division of integers"):
        compiled("#include <math.h>\n\ndouble f(double x)\n{\n    return 1 / 2;\n}\n")["f"](2.0)
