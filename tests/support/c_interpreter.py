"""C99 without a compiler: functions of doubles, such as `to_c` writes, are read by a grammar of their own and become functions of Python."""

import ctypes
import ctypes.util
import math
import re

import scipy.special


def _guarded(function):
    """A function of math.h: what Python raises for is an infinity or not a number there."""
    def call(*xs):
        try:
            return function(*xs)
        except OverflowError:
            return math.copysign(math.inf, xs[0]) if function is math.sinh else math.inf
        except ValueError:
            if function in (math.log, math.log2, math.log10) and xs[0] == 0 or function is math.log1p and xs[0] == -1:
                return -math.inf
            return math.inf if function is math.pow and xs[0] == 0 else math.nan

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
        "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 hypot fabs fmod remainder pow "
        "erf erfc cbrt".split()} | {"tgamma": _guarded(math.gamma), "lgamma": _lgamma()}
MATH |= {name: lambda x, function=function: float(function(x)) if math.isfinite(x) else x for name, function in (
    ("floor", math.floor), ("ceil", math.ceil), ("trunc", math.trunc), ("rint", round))}
MATH |= {"fmax": lambda a, b: b if a != a or b > a else a, "fmin": lambda a, b: b if a != a or b < a else a, "jn": _of_order("j"),
         "yn": _of_order("y")}


def divide(a, b):
    """The quotient in C."""
    try:
        return a / b
    except ZeroDivisionError:
        return math.copysign(math.inf, a * math.copysign(1.0, b)) if a == a and a else math.nan
    finally:
        assert isinstance(a, float) or isinstance(b, float), "a division of integers"


TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:e[-+]?\d+)?)|([A-Za-z_]\w*)|(&&|\|\||==|!=|<=|>=|\+\+|--|\+=|[-+*/()?:<>!,\[\];={}]))")
LEVELS = (("||",), ("&&",), ("==", "!="), ("<", ">", "<=", ">="), ("+", "-"), ("*", "/"))
IN_PYTHON = {"||": "bool({} or {})", "&&": "bool({} and {})", "/": "divide({}, {})"}


class Reader:
    """A recursive-descent reader of the body of a function, in C's order of precedence, which writes it in Python."""

    def __init__(self, text, names, functions):
        self.tokens = [next(filter(None, match.groups())) for match in TOKEN.finditer(text)]
        assert "".join(self.tokens) == re.sub(r"\s", "", text), f"not C: {text}"
        self.at, self.scopes, self.functions = 0, [set(names)], functions
        self.lines = []
        while self.peek():
            self.statement(1)

    def next(self, *wanted):
        token = self.tokens[self.at]
        assert not wanted or token in wanted, f"expected {wanted} and found {token} in {' '.join(self.tokens)}"
        self.at += 1
        return token

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def statement(self, depth):
        token = self.next()
        write = lambda text: self.lines.append("    " * depth + text)  # noqa: E731
        if token == "for":
            self.next("("), self.next("int")
            name, start = self.next(), self.next("=") and self.number()
            self.next(";"), self.next(name)
            sign, end = self.next("<", ">"), self.number()
            self.next(";"), self.next(name)
            step = {"++": "1", "--": "-1", "+=": None}[self.next("++", "--", "+=")] or self.number()
            assert (int(step) > 0) == (sign == "<")
            self.next(")")
            write(f"for {self.declared(name, loop=True)} in range({start}, {end}, {step}):")
            self.block(depth + 1, name)
            return
        if token == "if":
            write(f"if {self.choice()}:")
            self.block(depth + 1)
            if self.peek() == "else":
                self.next()
                write("else:")
                self.block(depth + 1)
            return
        if token == "return":
            write(f"return float({self.choice()})")
        elif token in ("const", "double"):
            name = self.next() if token == "double" else self.next("double") and self.next()
            if self.peek() == "=":
                self.next()
                write(f"{self.variable(name)} = float({self.choice()})")
            self.declared(name)
        else:
            place = self.known(token)
            if self.peek() == "[":
                self.next()
                place += f"[{self.choice()}]"
                self.next("]")
            self.next("=")
            write(f"{place} = float({self.choice()})")
        self.next(";")

    def block(self, depth, *names):
        self.scopes.append({*names})
        if self.peek() == "{":
            self.next()
            while self.peek() != "}":
                self.statement(depth)
            self.next()
        else:
            self.statement(depth)
        self.scopes.pop()

    def number(self):
        sign = self.next() if self.peek() == "-" else ""
        return sign + str(int(self.next()))

    @staticmethod
    def variable(name):
        return f"x_{name}"

    def declared(self, name, loop=False):
        assert name not in self.scopes[-1], f"{name} is declared twice"
        if not loop:
            self.scopes[-1].add(name)
        return self.variable(name)

    def known(self, name):
        assert any(name in scope for scope in self.scopes), f"{name} is not declared"
        return self.variable(name)

    def choice(self):
        condition = self.binary(0)
        if self.peek() != "?":
            return condition
        self.next("?")
        yes = self.choice()
        self.next(":")
        return f"({yes} if {condition} else {self.choice()})"

    def binary(self, level):
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in LEVELS[level]:
            sign = self.next()
            left = IN_PYTHON.get(sign, f"({{}} {sign} {{}})").format(left, self.binary(level + 1))
        return left

    def unary(self):
        if self.peek() in ("-", "!"):
            return f"({'-' if self.next() == '-' else 'not '}{self.unary()})"
        return self.atom()

    def atom(self):
        token = self.next()
        if token == "(":
            if self.peek() == "double":  # a cast
                self.next(), self.next(")")
                return f"float({self.unary()})"
            out = self.choice()
            self.next(")")
            return f"({out})"
        if token[0].isdigit():
            return repr(float(token) if "." in token or "e" in token else int(token))
        if self.peek() == "(":
            assert token in self.functions and not any(token in scope for scope in self.scopes), f"{token} is not a function here"
            self.next()
            args = [self.choice()]
            while self.peek() == ",":
                self.next()
                args.append(self.choice())
            self.next(")")
            return f"f_{token}({', '.join(args)})"
        if self.peek() == "[":
            self.next()
            index = self.choice()
            self.next("]")
            return f"{self.known(token)}[{index}]"
        return {"INFINITY": "inf", "NAN": "nan"}.get(token) or self.known(token)


DECLARATION = re.compile(r"\ndouble \w+\(int order, double x\);\n")
FUNCTION = re.compile(r"(?:static )?(double|void) (\w+)\(([^)]*)\)\n\{\n(.*?)\n\}\n", re.S)


def compiled(source):
    """The functions of a source by name: called with numbers and lists; what is written to a list stays there."""
    includes, functions = re.match(r"#include <math.h>\n", source), dict(MATH)
    assert includes
    rest = DECLARATION.sub("", source[includes.end():])
    space = {"divide": divide, "inf": math.inf, "nan": math.nan} | {f"f_{name}": function for name, function in MATH.items()}
    for kind, name, parameters, body in FUNCTION.findall(rest):
        names = [re.fullmatch(r"(?:const )?double \*?(\w+)", p.strip()).group(1) for p in parameters.split(",")] if parameters != "void" else []
        reader = Reader(body, names, functions)
        exec("\n".join([f"def f_{name}({', '.join(map(reader.variable, names))}):", *reader.lines]), space)
        assert kind == "void" or re.search(r"return .*;\s*$", body)
        functions[name] = space[f"f_{name}"]
    assert not FUNCTION.sub("", rest).strip(), "there is more than functions"
    return functions
