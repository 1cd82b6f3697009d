"""C99 without a compiler: straight-line functions of doubles, such as `to_c` writes, read by a grammar of their own and computed with floats."""

import ctypes
import ctypes.util
import math
import re

import scipy.special

TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:e[-+]?\d+)?)|([A-Za-z_]\w*)|(&&|\|\||==|!=|<=|>=|[-+*/()?:<>!,\[\];={}]))")


def _guarded(function):
    """A function of math.h: what Python raises for is an infinity or not a number there."""
    def call(*xs):
        try:
            return function(*xs)
        except OverflowError:
            return math.inf
        except ValueError:
            return -math.inf if function in (math.log, math.log2, math.log10) and xs[0] == 0 else math.nan

    return call


def _of_order(letter):
    """A Bessel function of whole order; SciPy's general functions have fewer digits for small numbers."""
    first, second, general = (getattr(scipy.special, letter + end) for end in "01v")
    return lambda n, x: first(x) if n == 0 else second(x) if n == 1 else general(n, x)


def _lgamma():
    """That of the C library, since Python's own is 60 ULP off next to the zeros; Python's, where there is none to load."""
    try:
        function = ctypes.CDLL(ctypes.util.find_library("m")).lgamma
    except (OSError, AttributeError, TypeError):
        return math.lgamma
    function.argtypes, function.restype = [ctypes.c_double], ctypes.c_double
    return function


MATH = {name: _guarded(getattr(math, name)) for name in
        "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 hypot fabs fmod pow "
        "erf erfc cbrt".split()} | {"tgamma": _guarded(math.gamma), "lgamma": _lgamma()}
MATH |= {"floor": lambda x: float(math.floor(x)), "ceil": lambda x: float(math.ceil(x)), "trunc": lambda x: float(math.trunc(x)),
         "rint": lambda x: float(round(x)), "fmax": max, "fmin": min, "jn": _of_order("j"), "yn": _of_order("y")}


class Reader:
    """A recursive-descent reader that computes as it goes, in C's order of precedence."""

    def __init__(self, text, variables, functions):
        self.tokens = [next(filter(None, match.groups())) for match in TOKEN.finditer(text)]
        assert "".join(self.tokens) == re.sub(r"\s", "", text) and not re.search(r"--|\+\+", text), f"not C: {text}"
        self.at, self.variables, self.functions = 0, variables, functions

    def next(self, wanted=None):
        token = self.tokens[self.at]
        assert wanted is None or token == wanted, f"expected {wanted} and found {token} in {' '.join(self.tokens)}"
        self.at += 1
        return token

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def choice(self):
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        self.next("?")
        yes = self.choice()
        self.next(":")
        no = self.choice()
        return yes if condition else no

    LEVELS = (("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">="), ("+", "-"), ("*", "/"))

    def binary(self, level):
        if level == len(self.LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in self.LEVELS[level]:
            left = self.applied(self.next(), left, self.binary(level + 1))
        return left

    @staticmethod
    def applied(sign, a, b):
        if sign == "/":
            assert isinstance(a, float) or isinstance(b, float), "a division of integers"
            return a / b if b else math.copysign(math.inf, a * math.copysign(1.0, b)) if a else math.nan
        return {"||": lambda: int(bool(a) or bool(b)), "&&": lambda: int(bool(a) and bool(b)), "==": lambda: int(a == b), "!=": lambda: int(a != b),
                "<": lambda: int(a < b), ">": lambda: int(a > b), "<=": lambda: int(a <= b), ">=": lambda: int(a >= b),
                "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b}[sign]()

    def unary(self):
        if self.peek() in ("-", "!"):
            return -self.unary() if self.next() == "-" else int(not self.unary())
        return self.atom()

    def atom(self):
        token = self.next()
        if token == "(":
            if self.peek() == "double":  # a cast
                self.next(), self.next(")")
                return float(self.unary())
            out = self.choice()
            self.next(")")
            return out
        if token[0].isdigit():
            return float(token) if "." in token or "e" in token else int(token)
        if self.peek() == "(":
            self.next()
            args = [self.choice()]
            while self.peek() == ",":
                self.next()
                args.append(self.choice())
            self.next(")")
            return self.functions[token](*map(float, args))
        if self.peek() == "[":
            self.next()
            index = self.choice()
            self.next("]")
            return self.variables[token][index]
        return {"INFINITY": math.inf, "NAN": math.nan}[token] if token in ("INFINITY", "NAN") else self.variables[token]


DECLARATION = re.compile(r"\ndouble \w+\(int order, double x\);\n")
FUNCTION = re.compile(r"(?:static )?(double|void) (\w+)\(([^)]*)\)\n\{\n(.*?)\n\}\n", re.S)


def compiled(source):
    """The functions of a source by name: called with numbers and lists; what is written to a list stays there."""
    includes, functions = re.match(r"#include <math.h>\n", source), dict(MATH)
    assert includes
    rest = DECLARATION.sub("", source[includes.end():])
    for kind, name, parameters, body in FUNCTION.findall(rest):
        functions[name] = _function(kind, parameters, body, functions)
    assert not FUNCTION.sub("", rest).strip(), "there is more than functions"
    return functions


def _function(kind, parameters, body, functions):
    names = [re.fullmatch(r"(?:const )?double \*?(\w+)", p.strip()).group(1) for p in parameters.split(",")] if parameters != "void" else []

    def call(*values):
        assert len(values) == len(names)
        found = _run(body, dict(zip(names, values)), functions)
        assert (found is None) == (kind == "void")
        return found

    return call


LOOP = re.compile(r"\s*for \(int (\w+) = (\d+); \1 ([<>]) (\d+); \1(\+\+|--)\)\s*(\{.*?\n    \}|[^;{]*;)", re.S)


def _run(body, variables, functions):
    """The number that statements return, None if they return nothing; what they declare and assign is in the variables."""
    while body.strip():
        loop = LOOP.match(body)
        if loop is not None:
            name, start, sign, end, step, inner = loop.groups()
            for k in range(int(start), int(end), 1 if step == "++" else -1):
                assert (step == "++") == (sign == "<")
                inside = variables | {name: k}
                assert _run(inner.strip("{}\n "), inside, functions) is None
                variables |= {x: inside[x] for x in variables}
            body = body[loop.end():].removeprefix("}")
            continue
        statement, _, body = body.partition(";")
        statement = statement.strip()
        declared = re.fullmatch(r"(?:const )?double (\w+) = (.*)", statement, re.S)
        assigned = re.fullmatch(r"(\w+)\[(\d+)\] = (.*)", statement, re.S)
        changed = re.fullmatch(r"(\w+) = (.*)", statement, re.S)
        returned = re.fullmatch(r"return (.*)", statement, re.S)
        reader = Reader((declared or assigned or changed or returned).groups()[-1], variables, functions)
        value = float(reader.choice())
        assert reader.at == len(reader.tokens), f"{statement} does not end"
        if returned:
            return value
        if assigned:
            variables[assigned[1]][int(assigned[2])] = value
        else:
            name = (declared or changed)[1]
            assert (name in variables) != bool(declared)
            variables[name] = value
    return None
