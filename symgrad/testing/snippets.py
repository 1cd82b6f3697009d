"""Code that reproduces a failure, for a report: every number in it is exact."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy

from symgrad.checks.cross import names_of
from symgrad.frameworks.naming import import_path
from symgrad.graph import domains
from symgrad.graph.domains import Domain, Interval
from symgrad.sampling.domain_reader import text_that_reads
from symgrad.symbolic.parameters import parse_formula
from symgrad.testing.attack import Attack, Check, user_example
from symgrad.testing.claims import Claims
from symgrad.testing.examples import Example

IRRELEVANT_CLAIMS = ("without", "errors")  # claims that do not change the result of a check at one input
WIDE = 110


class SnippetCode:
    """Values as source text. `imports` collects the modules needed, `names` the names imported from modules, `undefined` names without an import.

    >>> code = SnippetCode()
    >>> code.of(np.array([1.0, -0.0])), code.of(np.float32(0.1)), code.of(float("inf")), sorted(code.imports)
    ('np.array([1.0, -0.0])', 'np.float32(0.1)', 'np.inf', ['import numpy as np'])
    """

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.names: dict[str, set[str]] = {}
        self.undefined: list[str] = []

    def of(self, x: Any, name: str = "value") -> str:
        """The source text of a value; a value without one becomes the `name`, which the user has to define."""
        if isinstance(x, np.ndarray):
            return self._array(x)
        if isinstance(x, np.generic):
            return f"{self._dtype(x.dtype)}({self._number(x)})"
        if isinstance(x, (bool, int, str, bytes, type(None), type(Ellipsis), range)):
            return "..." if x is Ellipsis else repr(x)
        if isinstance(x, (float, complex)):
            return self._number(x)
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            x = tuple(x)
        if isinstance(x, (tuple, list)):
            inner = ", ".join(self.of(e, f"{name}_{i}") for i, e in enumerate(x))
            return f"[{inner}]" if isinstance(x, list) else f"({inner},)" if len(x) == 1 else f"({inner})"
        if isinstance(x, Mapping):
            return "{" + ", ".join(f"{self.of(k)}: {self.of(v, str(k))}" for k, v in x.items()) + "}"
        if isinstance(x, slice):
            return f"slice({', '.join(self.of(e) for e in (x.start, x.stop, x.step))})"
        if isinstance(x, np.dtype):
            self.imports.add("import numpy as np")
            return f"np.dtype({x.name!r})"
        if isinstance(x, Domain):
            return self._domain(x)
        if type(x).__module__.partition(".")[0] == "sympy":
            return self._sympy(x)
        return self.named(x, name)

    def named(self, x: Any, name: str, path: tuple[str, str] | None = None) -> str:
        """The name of an object that can be imported, else a name that the user has to define."""
        path = path or (import_path(x) if callable(x) else None)
        if path is not None:
            module, qualified = path
            root = re.split(r"[.\[]", qualified)[0]
            self.names.setdefault(module, set()).add(root)
            return qualified
        if name not in self.undefined:
            self.undefined.append(name)
        return name

    def _dtype(self, dtype: np.dtype) -> str:
        if dtype.kind == "V":
            self.imports.add("import ml_dtypes")
            return f"ml_dtypes.{dtype.name}"
        self.imports.add("import numpy as np")
        return f"np.{'bool_' if dtype.kind == 'b' else dtype.name}"

    def _array(self, x: np.ndarray) -> str:
        self.imports.add("import numpy as np")
        plain = {"f": np.float64, "c": np.complex128, "b": np.bool_, "i": np.int64}.get(x.dtype.kind)
        kind = "" if x.dtype == plain else f", dtype={self._dtype(x.dtype)}"
        if x.size == 0:
            return f"np.zeros({x.shape}{kind or (', dtype=' + self._dtype(x.dtype) if x.dtype != np.float64 else '')})"
        return f"np.array({self._nested(x)}{kind})"

    def _nested(self, x: np.ndarray) -> str:
        return self._number(x[()]) if x.ndim == 0 else "[" + ", ".join(self._nested(part) for part in x) + "]"

    def _number(self, x: Any) -> str:
        if isinstance(x, (bool, np.bool_)):
            return str(bool(x))
        if isinstance(x, (int, np.integer)):
            return str(int(x))
        if isinstance(x, (complex, np.complexfloating)):
            return f"complex({self._number(float(x.real))}, {self._number(float(x.imag))})"
        if not math.isfinite(float(x)):
            self.imports.add("import numpy as np")
            return "np.nan" if math.isnan(float(x)) else "np.inf" if float(x) > 0 else "-np.inf"
        text = str(x)
        exact = float(text) == float(x) if isinstance(x, float) else type(x)(float(text)) == x
        return text if exact else repr(float(x))

    def _domain(self, d: Domain) -> str:
        known = next((name for name in domains.__all__ if getattr(domains, name) is d), None)
        if known is not None:
            self.names.setdefault("symgrad.graph.domains", set()).add(known)
            return known
        text = text_that_reads(d)
        if text is not None:
            return repr(text)
        self.names.setdefault("symgrad.graph.domains", set()).update(("Domain", "Interval"))
        parts = ", ".join(f"Interval({self.of(i.low)}, {self.of(i.high)}, {i.open_low}, {i.open_high})" if i != Interval() else "Interval()"
                          for i in d.intervals)
        return f"Domain({d.name!r}, ({parts},), {self.of(d.excluded)}, {d.integer})"

    def _sympy(self, e: Any) -> str:
        """A SymPy object as text if that parses to the same formula with the same order of names, else as SymPy's constructor calls."""
        if isinstance(e, sympy.Expr) and len(str(e)) <= WIDE:
            try:
                read, names = parse_formula(str(e))
                plain = e.xreplace({s: sympy.Symbol(str(s), real=True) for s in e.free_symbols})
                if read == plain and tuple(names) == tuple(names_of(e) or ()):
                    return repr(str(e))
            except Exception:  # the text cannot be parsed
                pass
        text = sympy.srepr(e)
        used = set(re.findall(r"[A-Za-z_]\w*", re.sub(r"'[^']*'|\"[^\"]*\"", "", text)))
        self.names.setdefault("sympy", set()).update(name for name in used if hasattr(sympy, name))
        return text


def snippet(check: Check, attack: Attack, example: Example) -> str:
    """Code that runs one check at one example: imports, and a call that raises the same failure."""
    code = SnippetCode()
    subject = attack.subject
    path = subject.import_path()
    arguments = [code.named(subject.function, subject.name if subject.name.isidentifier() else "op", path)]
    own = subject.framework == "symgrad" and subject.op is not None
    for field in dataclasses.fields(Claims):
        value = getattr(attack.claims, field.name)
        empty = field.default if field.default is not dataclasses.MISSING else {}
        if field.name in IRRELEVANT_CLAIMS or value is empty or isinstance(value, (tuple, Mapping)) and not value:
            continue
        if field.name == "framework" and own or field.name == "complex" and value is False and not own:
            continue
        arguments.append(f"{field.name}={code.of(value, field.name)}")
    if attack.profile.name != "dev":
        arguments.append(f"profile={attack.profile.name!r}")
    arguments.append(f"inputs={code.of(list(example.xs))}")
    arguments += _directions(code, attack, example)
    function = check.function
    if function.__module__.startswith("symgrad."):
        name = f"symgrad.testing.{function.__name__}"
    else:
        name = code.named(function, function.__name__)
    call = f"{name}({', '.join(arguments)})"
    if len(call) > WIDE:
        call = "\n".join([f"{name}(", *(f"    {a}," for a in arguments), ")"])
    lines = [*sorted(code.imports), "import symgrad.testing", *(f"from {m} import {', '.join(sorted(code.names[m]))}" for m in sorted(code.names))]
    undefined = [f"# define {name} here; it cannot be imported" for name in code.undefined]
    return "\n".join([*lines, *undefined, "", call])


def _directions(code: SnippetCode, attack: Attack, example: Example) -> list[str]:
    """The cotangent and the tangents, if they differ from those that a check uses by default."""
    def same(a: np.ndarray | None, b: np.ndarray | None) -> bool:
        return a is b if a is None or b is None else (a.shape, a.dtype, a.tobytes()) == (b.shape, b.dtype, b.tobytes())

    out = []
    plain = (user_example(attack, example.xs, None, None) or [example])[0]
    if not same(plain.cotangent, example.cotangent):
        out.append(f"cotangent={code.of(example.cotangent)}")
    if not all(same(a, b) for s, t in zip(plain.tangents, example.tangents) for a, b in zip(s, t)):
        out.append(f"tangents={code.of([tuple(s) for s in example.tangents])}")
    return out


def pytest_command() -> str:
    """The command that runs the current test again, "" outside pytest."""
    current = os.environ.get("PYTEST_CURRENT_TEST", "")
    return f"pytest {shlex.quote(current.rpartition(' (')[0])}" if current else ""
