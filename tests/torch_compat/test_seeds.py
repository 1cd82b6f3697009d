"""Snippets that people wrote for torch run unchanged with symgrad in its place, and print what torch prints.

The snippets stand in tests/support/data/seeds.txt, each behind a line `# === name`: notebooks, articles and a page of documentation about torch's
tensors, graph and autograd, word for word; a line `# Repaired:` says what was mended where the text had suffered. Lines of `# %%` part the cells of
a notebook, which shows the value of a cell's last expression. What torch prints is in seeds.json beside them, written by
`python -m tests.torch_compat.test_seeds`.
"""

import ast
import contextlib
import importlib
import importlib.util
import io
import json
import multiprocessing
import os
import pathlib
import re
import sys
import tempfile
import warnings

import pytest

DATA = pathlib.Path(__file__).parents[1] / "support" / "data"
RECORDED = DATA / "seeds.json"
_parts = re.split(r"^# === (\w+)\n", (DATA / "seeds.txt").read_text(), flags=re.M)[1:]
SNIPPETS = dict(zip(_parts[::2], _parts[1::2]))
SUBMODULES = ["nn", "nn.functional", "optim", "autograd", "utils", "utils.data", "utils.tensorboard"]
NUMBER = re.compile(r"-?\b\d+\.\d*(?:e[+-]\d+)?")
DRAWS = re.compile(r"\b(rand\w*|Linear|empty|DataParallel)\(")


def run(name):
    """Run one snippet in this process and working directory: what it printed, the warnings, and how it ended."""
    space, printed, error = {"__name__": "__main__"}, io.StringIO(), None
    cells = re.split(r"^# %%.*\n", SNIPPETS[name], flags=re.M)
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            for cell in cells:
                _run_cell(cell, name, space, len(cells) > 1)
        except Exception as e:
            error = [[c.__name__ for c in type(e).__mro__], str(e)]
    told = [[w.category.__name__, plain(str(w.message))] for w in caught if w.category is UserWarning]
    return {"printed": printed.getvalue(), "warnings": told, "error": error and [error[0], plain(error[1])]}


def _run_cell(cell, name, space, shows):
    tree = ast.parse(cell, name)
    last = tree.body.pop() if shows and tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), space)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), space)
        if value is not None:
            print(repr(value))


def plain(message):
    """A message without torch's pointers to its own sources."""
    return re.sub(r" (\(Triggered internally at [^)]*\)\.?|See github\.com\S* for more information\.)", "", message).strip()


def mask(text, draws):
    """Printed text with addresses and ids numbered in order of appearance, and random numbers taken out."""
    seen: dict[str, str] = {}
    text = re.sub(r"\b0x[0-9a-fA-F]+|\b\d{9,}\b", lambda m: seen.setdefault(m[0], f"#{len(seen) + 1}"), text)
    return " ".join(NUMBER.sub("~", text).split()).replace("[ ", "[") if draws else text


@contextlib.contextmanager
def elsewhere():
    """Work in an empty directory, with TensorBoard's servers left out: they are neither torch's nor symgrad's."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        if importlib.util.find_spec("tensorboard"):
            patch.setattr(importlib.import_module("tensorboard.notebook"), "start", lambda arguments: print("tensorboard", arguments))
            patch.setattr(importlib.import_module("tensorboard.manager"), "get_all", list)
        os.chdir(directory)
        try:
            yield
        finally:
            os.chdir(before)


@pytest.fixture
def symgrad_as_torch():
    """symgrad under torch's names, in single precision."""
    import symgrad

    before = {name: module for name, module in sys.modules.items() if name == "torch" or name.startswith("torch.")}
    for name in before:
        del sys.modules[name]
    sys.modules["torch"] = symgrad
    for name in SUBMODULES:
        with contextlib.suppress(ImportError):  # the snippet that needs it will say so
            sys.modules[f"torch.{name}"] = importlib.import_module(f"symgrad.{name}")
    default = symgrad.get_default_dtype()
    symgrad.set_default_dtype(symgrad.float32)
    try:
        with elsewhere():
            yield
    finally:
        symgrad.set_default_dtype(default)
        for name in ["torch", *(f"torch.{name}" for name in SUBMODULES)]:
            sys.modules.pop(name, None)
        sys.modules.update(before)


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_snippet_runs_as_with_torch(name, symgrad_as_torch):
    theirs, draws = json.loads(RECORDED.read_text())[name], bool(DRAWS.search(SNIPPETS[name]))
    ours = run(name)
    if theirs["error"] is None:
        assert ours["error"] is None
    else:
        assert ours["error"] is not None, f"torch raises {theirs['error']}"
        assert theirs["error"][0][0] in ours["error"][0]
        assert theirs["error"][1] in ours["error"][1]
    assert mask(ours["printed"], draws) == mask(theirs["printed"], draws)
    assert ours["warnings"] == theirs["warnings"]


def test_every_snippet_is_recorded():
    assert json.loads(RECORDED.read_text()).keys() == SNIPPETS.keys()


def _record(name):
    with elsewhere():
        return run(name)


def main():
    """Record what torch does, each snippet in a process of its own: torch gives some warnings only once."""
    import torch

    context, out = multiprocessing.get_context("fork"), {}
    for name in SNIPPETS:
        with context.Pool(1) as pool:
            out[name] = pool.apply(_record, (name,))
        print(name, out[name]["error"], out[name]["warnings"])
    RECORDED.write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n")
    print(len(out), "snippets with torch", torch.__version__)


if __name__ == "__main__":
    main()
