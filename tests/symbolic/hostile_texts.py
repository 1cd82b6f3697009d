"""Hostile texts: mutations of valid formulas, domains, values and declarations, deep nesting, huge numbers, other scripts, and code.

As a program, `python -m tests.symbolic.hostile_texts SEED COUNT`, it gives texts to every reader and prints what became of them as JSON: it ends
with an error if a text is evaluated, if a reader raises an undocumented exception, or if it needs more memory than is allowed.
"""

import collections
import contextlib
import io
import json
import random
import resource
import sys
import warnings

MEMORY = 3 << 30  # bytes of address space
CANARY = "hostile_canary"  # a name that no source code may contain that is compiled
FORMULAS = ("parse", "parse_formula")
SLOW = ("derive", "op_from_sympy")  # the readers that compute derivatives, which get one text of ten

NAMES = ("x", "y", "z", "x[0]", "A[1, 2]", "alpha", "e", "pi", "E", "I", "oo", "lambda", "def", "None", "_x", "__class__", "__builtins__", "self")
FUNCTIONS = {  # with a format of their arguments
    **dict.fromkeys(("exp", "sin", "log", "sqrt", "abs", "tanh", "gamma", "lgamma", "digamma", "square", "floor", "exp2", "cbrt", "round", "sinc",
                    "erfinv", "expit", "nan_to_num", "ceil", "sigmoid", "erf", "relu", "softplus"), "{0}"),
    **dict.fromkeys(("zeta", "beta", "maximum", "atan2", "hypot", "ldexp", "gammainc", "remainder", "fmod", "float_power", "logaddexp2", "xlogy"),
                    "{0}, {1}"),
    **dict.fromkeys(("chebyshev_polynomial_t", "laguerre_polynomial_l", "mvlgamma"), "{0}, {2}"),
    **dict.fromkeys(("polygamma", "jv"), "{2}, {0}"),
    "where": "{0} < {1}, {0}, 1",
    **dict.fromkeys(("clamp", "eval", "exec", "open", "print", "getattr"), "{0}"),
}
NUMBERS = (
    "0", "1", "2", "3", "0.1", "0.3", "96", "1e9", "1e-9", "1e300", "1e-300", "5e-324", "1e999", "9" * 30, "9" * 400, "1000", "1001", "10000", "0.5",
    "2.5", "100000.5", ".", "1.", "1..2", "0x10", "1_000", "1j", "٣", "２", "²")
SIGNS = (
    "+", "-", "*", "/", "**", "^", "//", "%", "@", "<", "<=", "==", ",", "(", ")", "[", "]", "{", "}", "=", ";", ":", "..", "->", "...", " ", "\n")
JUNK = (
    "\0", "\x1b[31m", "\ud800", "\udfff", "é", "Ω", "λ", "м", "名", "مرحبا", "a\u0301", "\u202e", "\u200b", "\ufeff", "ｘ", "𝐱", "﹢", "−", "×",
    "\u00a0", "{0.__class__}", "%s%n%d", "{x!r:>999999}", "'; DROP TABLE ops;--", "${jndi:x}", "`id`", "$(id)", "\\", "'", '"', "#", "//", "<!--",
    "\t", "\r", "\x7f", f"__import__('os').system('{CANARY}')", f"eval('{CANARY}()')", f"exec('{CANARY} = 1')", f"open('{CANARY}', 'w')",
    f"(lambda: {CANARY})()", f"[{CANARY} for _ in x]", "().__class__.__bases__[0].__subclasses__()", "x.__class__", "import os", "x if y else z",
    "x := 1", "f'{x}'", "not x")
DOMAINS = (
    "positive", "real", "-1..1", "(0, 1]", "{-1, 1}", "inf..inf", "-inf..inf", "[0, inf)", "1..0", "unit", "integer", "{}", "(,)", "..", "0...1",
    "nan..1", "pi/2..9**9**9", "{1e999}")
TEXTS = (
    "ij,jk->ik", "i,i", "...i->i", "ii->", "i->ii", "float32", "<f8", "f4,f4", "2,3", "cpu", "cuda:1", "cpu:-1", "cpu:" + "9" * 30, "m n", "m*n",
    "n n symmetric", "99999 99999", "x=1,y=[1, 2]", "x=[[1,2],[3]]", "x=pi/2", "x=9**9**9")


def formula(rng, depth=4):
    """A formula, most of whose parts are valid."""
    kind = rng.randrange(14) if depth else rng.randrange(5)
    if kind < 3:
        return rng.choice(NAMES[:8] if rng.random() < 0.98 else NAMES)
    if kind < 5:
        return rng.choice(NUMBERS[:7] if rng.random() < 0.8 else NUMBERS)
    a, b = formula(rng, depth - 1), formula(rng, depth - 1)
    if kind < 10:
        return f"{a}{rng.choice(SIGNS[:6])}{b}"
    if kind == 10:
        return f"({a})**({rng.choice((b, '2', '3', '0.5', rng.choice(NUMBERS)))})"
    if kind == 11:
        return f"({a}-{a}+{b})" if len(a) < 30 else f"-({a})"
    name = rng.choice(list(FUNCTIONS))
    return f"{name}({FUNCTIONS[name].format(a, b, rng.choice((*'0123', *NUMBERS)))})"


def _long(rng):
    """A text whose length, nesting, degree or number of terms is large."""
    n = rng.choice((3, 10, 30, 99, 101, 400, 3000, 40_000))
    part = rng.choice(("x", "(x+1)", "x+1", "sin(x)", "0.1", " ", "1", "9", "(", "-", "x_", "A[0]", "1/(1+"))
    return rng.choice((
        lambda: part * n, lambda: rng.choice("+-*/,^").join([part] * n), lambda: "(" * n + part + ")" * n, lambda: "exp(" * n + "x" + ")" * n,
        lambda: "1/(1+" * n + "x" + ")" * n, lambda: "x**" * n + "2", lambda: "+".join(f"x{i}" for i in range(n)),
        lambda: "*".join(f"(x+{i})" for i in range(n)), lambda: f"(x+y+z+w)**{n}",
        lambda: "square(" * min(n, 99) + rng.choice(("x", "0.1", "1.5")) + ")" * min(n, 99), lambda: f"x**{'9' * n}", lambda: f"{'9' * n}*x",
        lambda: "[" * n + "1" + "]" * n, lambda: "x=" + "[" + "1," * n + "]", lambda: "{" + "1," * n + "}", lambda: " " * n + "1..2",
        lambda: "1" + " " * n + "..2", lambda: "9**" * n + "9", lambda: "where(x>0," * min(n, 99) + "x" + ",1)" * min(n, 99), lambda: "A[" + "1," * n,
        lambda: "ij," * n + "->", lambda: "sin(x)*" * n + "x", lambda: f"{rng.choice(list(FUNCTIONS))}(x-x+{rng.choice(NUMBERS[:18])})*x"))()


def _mutated(rng, text):
    """A text with one change."""
    at, to = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    before, part, after = text[:at], text[at:to], text[to:]
    return rng.choice((
        before + after, before + rng.choice((*SIGNS, *JUNK, *NUMBERS)) + part + after, before + rng.choice(NUMBERS) + after, text + part,
        f"{before}({part}){after}", before + chr(rng.randrange(1, 0x3000)) + part + after, before + formula(rng, 2) + after))


def texts(seed, count):
    """So many hostile texts."""
    rng = random.Random(seed)
    out = []
    while len(out) < count:
        text = rng.choice((*[formula] * 5, _long, *(lambda rng, some=some: rng.choice(some) for some in (DOMAINS, TEXTS, JUNK))))(rng)
        if rng.random() < 0.1:
            text = f"x={text}"
        for _ in range(rng.choice((0, 0, 0, 0, 0, 0, 1, 1, 2, 5))):
            text = _mutated(rng, text)
        out.append(text)
    return out


def readers():
    """Each reader of text by name, with the exceptions that it documents."""
    import symgrad
    from symgrad.cli import main
    from symgrad.formulas.parsing import ParseError, parse, parse_values
    from symgrad.matrixcalc import matrix_gradient
    from symgrad.sampling.domain_reader import domain_of, parse_domains
    from symgrad.symbolic.parameters import parse_formula

    x = symgrad.tensor([[1.0, 2.0], [3.0, 4.0]])

    def call(text):
        found = parse(text)
        found(**{name: symgrad.tensor(0.5, requires_grad=True) for name in found.names})

    def command(*arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*arguments, "--quiet"])
        assert "Traceback" not in err.getvalue(), err.getvalue()
        if code == 2 and not err.getvalue().startswith("usage"):  # or the report says that the formula is not checkable
            assert err.getvalue().startswith("symgrad: ") or ": not checkable" in out.getvalue(), err.getvalue()
        assert code in (0, 1, 2), code
        if code == 2:
            raise ValueError("exit code 2")

    return {
        "parse": (call, (ParseError,)),
        "values": (parse_values, (ParseError,)),
        "parse_formula": (parse_formula, (ParseError,)),
        "domain_of": (domain_of, (TypeError, ValueError)),
        "parse_domains": (parse_domains, (ValueError,)),
        "matrix_gradient": (lambda text: matrix_gradient(lambda A: (A * A).sum(), "A", A=text), (ValueError,)),
        "einsum": (lambda text: symgrad.einsum(text, x, x), (RuntimeError, ValueError)),
        "dtype": (lambda text: symgrad.zeros(1, dtype=text), (TypeError,)),
        "device": (lambda text: symgrad.zeros(1, device=text), (RuntimeError, AssertionError)),
        "symbol": (lambda text: symgrad.tensor(1.0, symbol=text), (ValueError,)),
        "op name": (lambda text: symgrad.op_from_sympy(f"op_{text}", "x + 1", check=False), (ValueError,)),
        "--at": (lambda text: command("derive", "x", "--at", text), (ValueError,)),
        "--wrt": (lambda text: command("derive", "x", "--wrt", text), (ValueError,)),
        "derive": (lambda text: command("derive", text), (ValueError,)),
        "op_from_sympy": (lambda text: symgrad.op_from_sympy("hostile_op", text), (ValueError, TypeError)),
    }


def attack(seed, count):
    """Give texts to the readers: each one to those of formulas and two others, and one of ten to a slow one too."""
    known, rng = readers(), random.Random(seed + 1)
    quick = [name for name in known if name not in (*SLOW, *FORMULAS)]
    outcomes = collections.defaultdict(collections.Counter)
    readings, wrong = 0, []
    for i, text in enumerate(texts(seed, count)):
        for name in (*FORMULAS, *rng.sample(quick, 2), *([SLOW[i // 10 % 2]] if i % 10 == 0 else [])):
            print(f"{name} {text[:200]!a}", file=sys.stderr, flush=True)  # the last line tells which one was killed
            function, documented = known[name]
            try:
                function(text)
                outcomes[name]["accepted"] += 1
            except documented as error:
                outcomes[name][type(error).__name__] += 1
            except Exception as error:
                wrong.append(f"{name}({text[:300]!a}): {type(error).__name__}: {str(error)[:300]!a}")
            readings += 1
    return {"texts": count, "readings": readings, "outcomes": outcomes, "wrong": wrong}


def _watch(event, arguments):
    """An audit hook: no text may become code, a command or a file."""
    if event == "compile" and any(f"{CANARY}{end}" in str(arguments[0]) for end in ("(", "'", " =", " for")):
        raise SystemExit(f"compiled: {arguments[0]!a}")
    if event in ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn") or event == "open" and CANARY in str(arguments[0]):
        raise SystemExit(f"{event}: {arguments!a}")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    readers()
    sys.addaudithook(_watch)
    result = attack(int(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps(result | {"megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}))
