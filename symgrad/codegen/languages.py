"""The languages that source is written in: SymPy's printers, with the ops of programs.

A value that is used more than once, or is long, gets a line of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import count
from typing import Any, ClassVar

import sympy
from sympy.printing.c import C99CodePrinter
from sympy.printing.codeprinter import CodePrinter
from sympy.printing.numpy import JaxPrinter, NumPyPrinter
from sympy.printing.pycode import PythonCodePrinter

from symgrad.carriers.special.printed import SHARED
from symgrad.carriers.special.table import SPECIAL
from symgrad.codegen.equations import EquationResult
from symgrad.codegen.texts import LONGEST, Text, helpers_called, number_in_name
from symgrad.codegen.translated import Translated
from symgrad.symbolic.catalogue import WITH_PARAMETERS
from symgrad.symbolic.conversion import number_of
from symgrad.symbolic.programs import OpProgram, OpStep, Place


class SourcePrinter(CodePrinter):
    """A printer of SymPy that writes one program; a language adds its ops.

    An op is one entry, "precedence text": `{0:5}` in the text is an operand that is put in parentheses if it binds less tightly than 5. The
    precedences are 1 selection, 2 comparison, 4 sum, 5 product, 6 sign, 7 power, 9 call or name. SymPy's printer knows functions and numbers.
    """

    ops: ClassVar[dict[str, str]]
    helpers: ClassVar[dict[str, str]]  # functions that some ops call
    header: ClassVar[str]
    named: ClassVar[frozenset[Any]] = frozenset()  # numbers that have a name
    tensors: ClassVar[frozenset[str]] = frozenset()  # ops whose operands must not be plain numbers
    assignment: ClassVar[str] = "{} = {}"

    def __init__(self, program: OpProgram, names: Sequence[str], shapes: Sequence[tuple[int, ...]]):
        super().__init__({})
        self.program, self.names, self.shapes = program, names, shapes
        self.lines: list[str] = []
        self.new_names = (name for name in (f"v{i}" for i in count(1)) if name not in names)
        self.texts = self._write_steps()

    def _write_steps(self) -> list[Text]:
        steps = self.program.steps
        needed = [0] * len(steps)
        for i in self.program.outputs:
            needed[i] += 1
        for i in reversed(range(len(steps))):
            if needed[i]:
                for at, k in enumerate(steps[i].inputs):  # an extreme of several values is written as extremes of two
                    needed[k] += 1 if steps[i].name in EXTREMES else self.ops[steps[i].name].count(f"{{{at}")
        texts: list[Any] = []
        for i, step in enumerate(steps):
            text = self._text(step, texts) if needed[i] else Text("")
            if step.inputs and needed[i] and (needed[i] > 1 or len(text) > LONGEST):
                name = next(self.new_names)
                self.lines.append(self.assignment.format(name, text))
                text = Text(name)
            texts.append(text)
        return texts

    def _text(self, step: OpStep, texts: Sequence[Any]) -> Text:
        if step.name == "input":
            return Text(self.element(step.value))
        if step.name == "constant":
            text = self.number(step.value)
            return Text(text, 5 if "/" in text else 6 if text[0] == "-" else 9)
        precedence, _, text = self.ops[step.name].partition(" ")
        operands = self._operands(step.name, step.inputs, texts)
        while len(operands) > 2 and step.name in EXTREMES:
            operands = [Text(text.format(*operands)), *operands[2:]]
        return Text(text.format(*operands), int(precedence))

    def called(self, text: str) -> str:
        return helpers_called(text, self.helpers)

    def element(self, place: Place) -> str:
        """A parameter, or an element of one that is an array."""
        return f"{self.names[place.parameter]}[{', '.join(map(str, place.at))}]" if place.at else self.names[place.parameter]

    def number(self, constant: Any) -> str:
        """A number: an integer, a fraction or a name if it is one, else with all its digits."""
        if constant.is_Rational and max(abs(constant.p), constant.q) < 2**53 or constant in self.named:
            return str(self._print(constant))
        number = number_of(constant)
        return str(self._print(number if isinstance(number, complex) else sympy.sympify(number)))

    def _print_Float(self, expr: Any) -> str:
        return repr(float(expr))

    def _operands(self, op: str, inputs: Sequence[int], texts: Sequence[Text]) -> list[Text]:
        """The operands of an op: numbers as tensors, for functions that take only tensors."""
        dtype = f"{self.names[0]}.dtype" if self.names else "torch.float64"
        return [Text(f"torch.as_tensor({texts[i]}, dtype={dtype})") if op in self.tensors and self.program.steps[i].name == "constant" else texts[i]
                for i in inputs]

    def result(self, result: EquationResult, outputs: Sequence[int]) -> str:
        """The expression of one result, which may be an array."""
        if not result.shape:
            return str(self.texts[outputs[0]])
        return f"_array({', '.join([str(result.shape), *self._operands('_array', outputs, self.texts)])})"


EXTREMES = ("maximum", "minimum")  # the ops of any number of operands
OPERATORS = {
    "add": "4 {0:4} + {1:5}", "sub": "4 {0:4} - {1:5}", "mul": "5 {0:5} * {1:6}", "div": "5 {0:5} / {1:6}", "neg": "6 -{0:7}",
    "pow": "7 {0:8}**{1:7}", "square": "7 {0:8}**2", "eq": "2 {0:4} == {1:4}", "ne": "2 {0:4} != {1:4}", "lt": "2 {0:4} < {1:4}",
    "le": "2 {0:4} <= {1:4}", "gt": "2 {0:4} > {1:4}", "ge": "2 {0:4} >= {1:4}"}
UNARY = ("abs acos acosh angle asin asinh atan atanh ceil conj cos cosh exp exp2 expm1 floor imag log log10 log1p log2 logical_not real round rsqrt "
         "sign sin sinc sinh sqrt tan tanh trunc").split()
BINARY = "atan2 floor_divide hypot logaddexp logical_and logical_or maximum minimum remainder".split()
HELPER_OPS = {f"sinc{n}": f"9 _sinc{n}({{0}})" for n in (1, 2, 3)} | {
    "sech": "9 _sech({0})", "sech_square": "7 _sech({0})**2", "direction": "9 _direction({0}, {1})"}


def _calls(module: str, known: dict[str, Any]) -> dict[str, str]:
    """Ops as calls of functions, which are called like the op where SymPy's printer does not know another name."""
    names = {op: module + str(known.get(op, op)).rpartition(".")[2] for op in UNARY + BINARY}
    return {op: f"9 {name}({'{0}, {1}' if op in BINARY else '{0}'})" for op, name in names.items()} | {
        "fmod_tensor": f"9 {module}fmod({{0}}, {{1}})", "where": f"9 {module}where({{0}}, {{1}}, {{2}})"}


SIGMOID = '''

def _sigmoid(x):
    return np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))
'''
SECH = '''

def _sech(x):
    z = {m}.exp(-{m}.abs(x))
    return 2 * z / (1 + z * z)
'''
DIRECTION = '''

def _direction(x, y):
    h = {m}.hypot(x, y)
    return {m}.where(h == 0, 0.0, x / {m}.where(h == 0, 1.0, h))
'''
ARRAY = '''

def _array(shape, *elements):
    out = {m}.stack({broadcast}(*elements), {axis}=-1)
    return out.reshape((*out.shape[:-1], *shape))
'''
SINC = '''

def _sinc{n}(x):
    u = {pi} * x
    small = (u > -2.0) & (u < 2.0)
    near = {near}
    u = {m}.where(small, 1.0, u)
    s, c = {m}.sin(u), {m}.cos(u)
    return {m}.where(small, near, {far})
'''


def _sinc(n: int) -> tuple[str, str]:
    """The derivative of sin(πx)/(πx) of order n as two texts: the series near 0, and the formula elsewhere.

    They are written with u = πx, s = sin(u), c = cos(u). With S = s/u,
    u S⁽ⁿ⁾ + n S⁽ⁿ⁻¹⁾ = sin⁽ⁿ⁾(u); the power series has the coefficients (-1)ᵏ / ((2k + 1) (2k - n)!) of u²ᵏ⁻ⁿ.
    """
    far = "s / u"
    for k in range(1, n + 1):
        far = f"({('s', 'c', '-s', '-c')[k % 4]} - {f'{float(k)} * ' * (k > 1)}{far}) / u"
    terms = [(-1) ** k / ((2 * k + 1) * math.factorial(2 * k - n)) for k in range((n + 1) // 2, 15)]
    near = repr(terms[-1])
    for term in reversed(terms[:-1]):
        near = f"{term!r} + u * u * ({near})"
    scale = repr(math.pi**n)
    return f"{scale} * " + ("u * " if n % 2 else "") + f"({near})", f"{scale} * {far}"


def short_name(word: str, parameters: tuple[Any, ...]) -> str:
    """The name of a word with given parameters, for which alone a language may have source; the word itself if there is none."""
    return next((short for short, given in WITH_PARAMETERS.get(word, {}).items() if given == parameters), word)


DEFINITION = "\ndef "


def _count(definition: str) -> int:
    return definition.partition(")")[0].count(",") + 1


def _places(first: int, last: int, text: str = "{{{}}}", between: str = ", ") -> str:
    return between.join(text.format(i) for i in range(first, last))


def _special(language: str, m: str = "") -> tuple[dict[str, str], dict[str, str]]:
    """The special functions that a language has, and their helpers, for a module of arrays with this name."""
    ops: dict[str, str] = {}
    helpers: dict[str, str] = {}
    for name, shared in SHARED.items() if m else ():
        helpers[name] = "\n" + (shared if isinstance(shared, str) else shared[language]).replace("{m}", m)
    for name, row in SPECIAL.items():
        for short, parameters in WITH_PARAMETERS.get(name, {}).items():
            if text := row.sources.get(" ".join((language, *map(str, parameters)))):
                if text[0] == "\n":
                    helper = f"_{short}" if m else f"symgrad_{short}"
                    helpers[helper], text = "\n" * bool(m) + text, f"9 {helper}({_places(0, row.arity)})"
                ops[short] = text
        source = row.sources.get(language) or row.sources.get("Python")
        if language == "NumPy" and isinstance(row.arrays, str):  # a ufunc
            source = f"scipy.special.{row.arrays}"
        if not source:
            continue
        count = row.arity
        if not m and source.startswith(DEFINITION):  # to be translated
            source = f"9 symgrad_{name}{_places(row.arity, _count(source), '_{{{}:name}}', '')}({_places(0, row.arity)})"
        elif source[0] == "\n":
            helper, count = f"_{name}" if m else f"symgrad_{name}", _count(source)
            helpers[helper], source = "\n" * bool(m) + source.replace("{m}", m), helper
        ops[name] = source if "{" in source else f"9 {source}({_places(0, count)})"
        for short, parameters in WITH_PARAMETERS.get(name, {}).items():
            text = ops[name]
            for i, parameter in enumerate(parameters):
                text = text.replace(f"{{{row.arity + i}}}", str(parameter)).replace(f"{{{row.arity + i}:name}}", number_in_name(str(parameter)))
            ops.setdefault(short, text)
    return ops, helpers


def _to_translate() -> dict[str, str]:
    """The helpers in Python of which those in C are translated."""
    texts = {name: shared if isinstance(shared, str) else shared["C"] for name, shared in SHARED.items()}
    for name, row in SPECIAL.items():
        for source in (row.sources.get("C", ""), row.sources.get("Python", "")):
            if source.startswith(DEFINITION):
                texts.setdefault(f"_{name}", source)
    return texts


def _helpers(m: str, broadcast: str, axis: str) -> dict[str, str]:
    out = {"_sech": SECH.format(m=m), "_direction": DIRECTION.format(m=m), "_array": ARRAY.format(m=m, broadcast=broadcast, axis=axis)}
    for n in (1, 2, 3):
        near, far = _sinc(n)
        out[f"_sinc{n}"] = SINC.format(n=n, m=m, pi=math.pi, near=near, far=far)
    return out


class _Python(SourcePrinter):
    ops = OPERATORS | HELPER_OPS
    named = frozenset((sympy.pi, sympy.E))

    def _print_Rational(self, expr: Any) -> str:
        return f"{expr.p} / {expr.q}"

    def _module_format(self, fqn: str, register: bool = True) -> str:
        module, _, name = fqn.rpartition(".")
        return {"numpy": "np.", "jax.numpy": "jnp.", "math": "math."}[module] + name


class NumPy(_Python, NumPyPrinter):
    """NumPy."""

    special = _special("NumPy", "np")
    ops = _Python.ops | special[0] | _calls("np.", NumPyPrinter._kf) | {
        "round": "9 np.rint({0})", "relu": "9 np.maximum({0}, 0)", "rsqrt": "5 1 / np.sqrt({0})", "sigmoid": "9 _sigmoid({0})",
        "softplus": "9 np.logaddexp(0, {0})", "logsigmoid": "6 -np.logaddexp(0, -{0:7})"}
    helpers = {"_sigmoid": SIGMOID, **_helpers("np", "np.broadcast_arrays", "axis"), **special[1]}
    header = "import math\n\nimport numpy as np\nimport scipy.special\n"


class Torch(_Python, PythonCodePrinter):
    """PyTorch."""

    special = _special("Torch", "torch")
    ops = _Python.ops | special[0] | _calls("torch.", {}) | {
        "relu": "9 torch.relu({0})", "sigmoid": "9 torch.sigmoid({0})", "softplus": "9 _softplus({0})",
        "logsigmoid": "9 torch.nn.functional.logsigmoid({0})"}
    helpers = _helpers("torch", "torch.broadcast_tensors", "dim") | special[1] | {
        "_softplus": "\n\ndef _softplus(x):\n    return torch.logaddexp(x, torch.zeros_like(x))\n"}
    header = "import math\n\nimport torch\n"
    tensors = frozenset("atan2 hypot maximum minimum logaddexp logical_and logical_or where direction _array".split()) | special[0].keys()


class Jax(_Python, JaxPrinter):
    """JAX."""

    special = _special("Jax", "jnp")
    ops = {op: text.replace("np.", "jnp.") for op, text in NumPy.ops.items() if op not in NumPy.special[0]} | special[0] | {
        "relu": "9 jax.nn.relu({0})", "sigmoid": "9 jax.nn.sigmoid({0})", "softplus": "9 jax.nn.softplus({0})",
        "logsigmoid": "9 jax.nn.log_sigmoid({0})"}
    helpers = _helpers("jnp", "jnp.broadcast_arrays", "axis") | special[1]
    header = "import math\n\nimport jax\nimport jax.numpy as jnp\nimport jax.scipy.special\n"


def _static(declared: str, *statements: str) -> str:
    body = "".join(f"    {statement}\n" for statement in statements)
    return f"\nstatic double symgrad_{declared}\n{{\n{body}}}\n"


class C(SourcePrinter, C99CodePrinter):
    """C99, with doubles."""

    special = _special("C")
    ops = OPERATORS | special[0] | {
        op: text for op, text in _calls("", C99CodePrinter._kf).items() if op not in ("conj", "real", "imag", "angle")} | {
        op: f"9 symgrad_{op}({{0}})" for op in ("sign", "sech", "sinc", "sinc1", "sinc2", "sinc3", "sigmoid", "relu")} | {
        op: f"9 symgrad_{op}({{0}}, {{1}})" for op in ("maximum", "minimum", "logaddexp", "floor_divide", "direction")} | {
        "abs": "9 fabs({0})", "round": "9 rint({0})", "rsqrt": "5 1.0 / sqrt({0})", "pow": "9 pow({0}, {1})", "square": "5 {0:6} * {0:6}",
        "remainder": "9 symgrad_mod({0}, {1})", "sech_square": "9 symgrad_square(symgrad_sech({0}))", "where": "1 {0:2} ? {1:2} : {2:1}",
        "logical_and": "1 {0:2} && {1:2}", "logical_or": "1 {0:2} || {1:2}", "logical_not": "6 !{0:6}",
        "softplus": "4 fmax({0}, 0.0) + log1p(exp(-fabs({0})))", "logsigmoid": "4 fmin({0}, 0.0) - log1p(exp(-fabs({0})))"}
    helpers = Translated(_to_translate(), special[1] | {  # math.h of C99 does not declare the Bessel functions of POSIX
        **{name: f"\ndouble {name}(int order, double x);\n" for name in ("jn", "yn")},
        "symgrad_mod": _static("mod(double a, double b)", "double r = fmod(a, b);", "return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;"),
        "symgrad_sign": _static("sign(double x)", "return x != x ? x : (double)((x > 0.0) - (x < 0.0));"),
        "symgrad_maximum": _static("maximum(double a, double b)", "return a >= b || a != a ? a : b;"),  # fmax leaves a NaN out
        "symgrad_minimum": _static("minimum(double a, double b)", "return a <= b || a != a ? a : b;"),
        "symgrad_relu": _static("relu(double x)", "return x > 0.0 || x != x ? x : 0.0;"),
        "symgrad_sigmoid": _static("sigmoid(double x)", "double z = exp(-fabs(x));", "return (x < 0.0 ? z : 1.0) / (1.0 + z);"),
        "symgrad_logaddexp": _static("logaddexp(double a, double b)", "double d = a - b;",
                                     f"return a == b ? a + {math.log(2)!r} : (d > 0.0 ? a : b) + log1p(exp(-fabs(d)));"),
        "symgrad_floor_divide": _static(
            "floor_divide(double a, double b)", "double r = fmod(a, b);", "double q = (a - r) / b - (r != 0.0 && (r < 0.0) != (b < 0.0));",
            "double n = floor(q);", "return b == 0.0 ? a / b : q == 0.0 ? 0.0 * (a / b) : q - n > 0.5 ? n + 1.0 : n;"),
        "symgrad_square": _static("square(double x)", "return x * x;"),
        "symgrad_sech": _static("sech(double x)", "double z = exp(-fabs(x));", "return 2.0 * z / (1.0 + z * z);"),
        "symgrad_sinc": _static(
            "sinc(double x)", "double r = remainder(x, 2.0);", "double s = fabs(r) > 0.5 ? (r < 0.0 ? -1.0 : 1.0) - r : r;",  # without rounding
            "return x == 0.0 ? 1.0 : sin(3.141592653589793 * s) / (3.141592653589793 * x);"),
        **{f"symgrad_sinc{n}": _static(f"sinc{n}(double x)", f"double u = {math.pi!r} * x;", "double s = sin(u);", "double c = cos(u);",
                                       f"return u > -2.0 && u < 2.0 ? {_sinc(n)[0]} : {_sinc(n)[1]};") for n in (1, 2, 3)},
        "symgrad_direction": _static("direction(double x, double y)", "double h = hypot(x, y);", "return h == 0.0 ? 0.0 : x / h;"),
    }, ops)
    header = "#include <math.h>\n"
    assignment = "const double {} = {};"

    def element(self, place: Place) -> str:
        """A parameter, or an element of one that is stored row by row."""
        at = 0
        for i, n in zip(place.at, self.shapes[place.parameter]):
            at = at * n + i
        return f"{self.names[place.parameter]}[{at}]" if place.at else self.names[place.parameter]

    def _print_complex(self, number: complex) -> str:
        raise TypeError(f"to_c: {number} is complex, and C's double is real")

    def _print_Integer(self, expr: Any) -> str:
        return repr(float(expr))

    def _print_BooleanTrue(self, expr: Any) -> str:  # true is a name of stdbool.h
        return "1"

    def _print_BooleanFalse(self, expr: Any) -> str:
        return "0"
