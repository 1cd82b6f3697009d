"""A verdict and its report depend on the function, its inputs, the seed and the effort: not on a clock, a thread, the load or a progress bar."""

import ast
import contextlib
import functools
import re
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest
import sympy

import symgrad
from symgrad.graph.op import REGISTRY
from tests.support.identities import FALSE, TRUE
from tests.support.lines import lines

ROOT = Path(symgrad.__file__).parent
CLOCKS = "monotonic", "perf_counter", "process_time", "time", "thread_time"
ARRAY = [0.3, -1.25, 2.0]


def checks():
    """Calls of `check`: of the functions of the corpus, right and with a wrong gradient, and of pairs against a formula."""
    for name, names, text in lines("checked"):
        function = eval(f"lambda {names}: {text}")
        inputs = (0.7, 1.9) if names == "x, y" else (ARRAY,)
        yield f"check {name}", functools.partial(symgrad.check, function, *inputs, points=4, progress=False)
        yield f"check {name}, order 1", functools.partial(symgrad.check, function, *inputs, points=4, order=1, seed=7, progress=False)
    for text in ("sin(x)", "tanh(x)", "exp(-x*x)", "x*log(1 + x*x)", "sqrt(1 + x*x)"):
        x = sympy.Symbol("x", real=True)
        value = sympy.sympify(text, {"x": x})
        for slope in (sympy.diff(value, x), sympy.diff(value, x) * sympy.Float(1.001), sympy.Abs(sympy.diff(value, x))):
            pair = tuple(sympy.lambdify(x, e, "numpy") for e in (value, slope))
            yield f"pair {text} and {slope}", functools.partial(symgrad.check, pair, formula=text, order=1, points=10, domain=(-3, 3), progress=False)


def proofs():
    """Calls of `prove`, of elementwise ops to the second order."""
    names = sorted(op.name for op in REGISTRY.values() if op.kind == "elementwise" and op.surface.public and op.differentiable and op.arity == 1
                   and not op.parameters)
    for name in names[::2][:40]:
        yield f"prove {name}", functools.partial(symgrad.prove, name, 2, complex=False, points=6)


def identities():
    """Calls of `identical`."""
    for cases, step in ((TRUE, 5), (FALSE, 5)):
        for case in cases[::step]:
            yield f"identical {case.a} {case.b}", functools.partial(symgrad.identical, case.a, case.b, case.assumptions)


KINDS = [[(f"{k}: {name}", call) for k, (name, call) in enumerate(kind)] for kind in (checks(), proofs(), identities())]
CASES = sum(KINDS, [])
SOME = [case for kind in KINDS for case in kind[1::len(kind) // 2]][:6]


def plain(report):
    """What a report says, without the seconds that it took."""
    def without(x):
        if isinstance(x, dict):
            return {k: without(v) for k, v in x.items() if k != "seconds"}
        return [without(v) for v in x] if isinstance(x, list) else x

    return without(report.to_dict()), re.sub(r"[\d.e+-]+ s\b", "", str(report))


def said(cases):
    return {name: plain(call()) for name, call in cases}


@contextlib.contextmanager
def clocks(factor):
    """All clocks run faster by a factor, in the modules that have them by name, too."""
    changed = {getattr(time, name): functools.partial(lambda clock: factor * clock(), getattr(time, name)) for name in CLOCKS}
    with pytest.MonkeyPatch.context() as patch:
        for module in [m for name, m in sys.modules.items() if m is time or name.partition(".")[0] == "symgrad"]:
            for name, value in list(vars(module).items()):
                if isinstance(value, types.BuiltinFunctionType) and value in changed:
                    patch.setattr(module, name, changed[value])
        yield


@contextlib.contextmanager
def busy():
    """Other processes take the processors."""
    others = [subprocess.Popen([sys.executable, "-c", "import time\nend = time.time() + 600\nwhile time.time() < end: pass"]) for _ in range(3)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def in_thread(cases):
    """What the cases say in a thread beside busy processes, in the reverse order."""
    out = {}
    with busy():
        thread = threading.Thread(target=lambda: out.update(said(cases[::-1])))
        thread.start()
        thread.join()
    return out


def differences(cases):
    expected = said(cases)
    with clocks(20.0):
        fast = said(cases)
    with clocks(0.05):
        slow = said(cases)
    return [(name, how) for how, found in (("fast", fast), ("slow", slow), ("in a thread", in_thread(cases))) for name in expected
            if found.get(name) != expected[name]]


def test_the_clocks_are_changed():
    from symgrad.algebra import limits

    start = time.monotonic(), limits.clock()
    with clocks(20.0):
        assert time.monotonic() > 10 * start[0] and limits.clock() > 10 * start[1]
    with clocks(1e6), pytest.raises(limits.OutOfTime), limits.abort_after(1.0):
        for _ in range(10**6):
            limits.poll()


def test_some_reports_depend_on_no_clock_no_thread_and_no_load():
    assert not differences(SOME)


def test_there_are_two_hundred_cases():
    assert len(CASES) >= 200 and len(dict(CASES)) == len(CASES)


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(4))
def test_reports_depend_on_no_clock_no_thread_and_no_load(part):
    assert not differences(CASES[part::4])


def test_a_bar_changes_no_report(capsys):
    function = eval("lambda x, y: (x.sin() * y).exp() + y.log() * x.cos()")
    shown, silent = (plain(symgrad.check(function, 0.7, 1.9, points=4, progress=progress)) for progress in (True, False))
    assert shown == silent


VERDICTS = "algebra", "reference", "proofs", "checks", "scanning", "diagnose", "testing", "sampling", "frameworks", "symbolic"
CLOCKED = re.compile(r"\b(monotonic|process_time|thread_time|time_ns|clock|setitimer|time\.time)\b")
SHOWN = re.compile(r"\bperf_counter\b")  # for durations that are printed


def clock_reads(source):
    """The expressions that read a clock but to say how long something took."""
    tree = ast.parse(source) if CLOCKED.search(source) or SHOWN.search(source) else ast.Module([])
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)) and CLOCKED.fullmatch(ast.unparse(node).removeprefix("time.").removeprefix("signal.")):
            yield ast.unparse(node)
        elif (isinstance(node, ast.Compare) or isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Sub)) and SHOWN.search(ast.unparse(node)):
            yield ast.unparse(node)


def test_no_module_that_gives_verdicts_reads_a_clock():
    found = {f"{path.relative_to(ROOT)}: {read}" for name in VERDICTS for path in sorted((ROOT / name).rglob("*.py")) if path.name != "limits.py"
             for read in clock_reads(path.read_text())}
    assert not found


@pytest.mark.parametrize("line", ["if time.monotonic() > end:\n    x = 1", "while clock() < end:\n    pass", "end = time.perf_counter() + seconds",
                                  "from time import process_time as now\nclock = process_time\nnow()", "x = 1 if time.perf_counter() > end else 2",
                                  "signal.setitimer(signal.ITIMER_PROF, 1.0)"])
def test_a_clock_that_decides_is_found(line):
    assert list(clock_reads(line))
    assert not list(clock_reads("start = time.perf_counter()\nreport.seconds = time.perf_counter() - start"))
