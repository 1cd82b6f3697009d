"""Docstrings of ops, generated from their declarations and from the tables of sentences in `sentences.txt`.

`python -m tests.stubs` runs the examples and writes the docstrings of the public ops, with outputs and dtypes, to `documentation.txt`;
`import symgrad` only reads that file.
"""

from __future__ import annotations

import functools
import os
from inspect import Signature

from symgrad.graph.op import Op

STORE = os.path.join(os.path.dirname(__file__), "documentation.txt")
MARK = "\f"  # precedes the name of each op in that file


@functools.cache
def sentences(table: str) -> dict[str, str]:
    """One table of `sentences.txt`: of each name the sentence."""
    with open(os.path.join(os.path.dirname(__file__), "sentences.txt"), encoding="utf-8") as file:
        lines = file.read().partition(f"[{table}]\n")[2].partition("\n[")[0].splitlines()
    found: dict[str, str] = {}
    for line in lines:
        names, _, sentence = line.partition(": ")
        for name in names.split(", ") if sentence else ():
            if name in found:
                raise ValueError(f"documentation: {name} has two entries in the table {table}; remove one")
            found[name] = sentence
    return found


def described(op: Op, name: str) -> str | None:
    """The sentence for a parameter, None if there is none; an entry for the op takes precedence."""
    return sentences("parameters").get(f"{op.name}.{name}") or sentences("parameters").get(name)


def _shapes(op: Op, signature: Signature) -> str:
    if op.name in sentences("shapes"):
        return sentences("shapes")[op.name]
    names = op.argument_names
    if op.kind == "elementwise":
        return f"the result has the shape of `{names[0]}`." if len(names) == 1 else f"{_listed(names)} broadcast; the result has the broadcast shape."
    if "keepdim" in signature.parameters:
        scalar = signature.parameters["dim"].default is None
        return ("the shape of `input` without the reduced dimensions, or with size 1 there where `keepdim` is true"
                + ("; without `dim` no dimensions are left." if scalar else "."))
    return ""


def _dtypes(op: Op, measured: str) -> str:
    """The dtypes: from the table, else as measured, else as an elementwise op declares them."""
    if op.name in sentences("dtypes"):
        return sentences("dtypes")[op.name]
    if op.kind != "elementwise":
        return measured
    declared = "integers stay integers." if op.numerics.integers else "integers are converted to the default dtype."
    return (measured or declared) + " Arguments of different dtypes are promoted to one." * (len(op.argument_names) > 1)


def _returns(op: Op) -> str:
    if op.name in sentences("returns"):
        return sentences("returns")[op.name]
    if op.view == "many":
        return "a tuple of views, none of which may be written."
    if op.view:
        return f"a view of `{op.argument_names[0]}`, which shares its memory."
    return "a new tensor" + (", differentiable to every order." if op.differentiable else ", which has no gradient.")


def _raises(op: Op, signature: Signature) -> str:
    found = [sentences("raises")[op.name]] if op.name in sentences("raises") else []
    if op.kind == "elementwise" and len(op.argument_names) > 1:
        found.append("RuntimeError for shapes that do not broadcast.")
    if "dim" in signature.parameters:
        found.append("IndexError for a `dim` out of range.")
    if op.arity is not None:
        found.append("TypeError for arguments of another kind.")
    return " ".join(found)


def _declared(op: Op, name: str) -> str:
    """The sentence for a parameter of an op that has no entries in the tables."""
    return "a tensor or a number." if name in op.argument_names else "a parameter of the rule, which is not differentiated."


def _listed(names: tuple[str, ...]) -> str:
    quoted = [f"`{name}`" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def documentation(op: Op, signature: Signature, dtypes: str = "", example: str = "") -> str:
    """The docstring of an op: value, parameters, shapes, dtypes, result, errors, kind, and an example with its output.

    `dtypes` and `example` are measured by running the op; without `dtypes` the declaration of an elementwise op is used.
    """
    lines = [op.docs.doc, ""]
    if signature.parameters:
        lines += ["Parameters:", *(f"    {name}: {(example and described(op, name)) or _declared(op, name)}" for name in signature.parameters)]
        if "dim" in signature.parameters or "keepdim" in signature.parameters:
            lines.append("`axis`, `keepdims` and `ddof` are accepted for `dim`, `keepdim` and `correction`.")
    sections = {"Shapes": _shapes(op, signature), "Dtypes": _dtypes(op, dtypes), "Returns": _returns(op), "Raises": _raises(op, signature)}
    lines += ["", *(f"{title}: {text}" for title, text in sections.items() if text)]
    domains = [f"{name} in {domain!r}" for name, domain in zip(op.argument_names, op.domain) if domain.name not in ("REAL", "FIXED")]
    lines.append(f"Kind: {op.kind}." + (f" Domain: {', '.join(domains)}." if domains else ""))
    return "\n".join([*lines, "", example] if example else lines)


def stored() -> dict[str, str]:
    """The docstrings of the public ops by name, from `documentation.txt`."""
    if not os.path.exists(STORE):
        return {}
    with open(STORE, encoding="utf-8") as file:
        return dict(part.rstrip("\n").split("\n", 1) for part in file.read().split(MARK)[1:])
