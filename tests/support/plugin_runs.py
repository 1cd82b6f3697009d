"""Runs of pytest inside tests, on ops that are written to files."""

import importlib
import pkgutil
import sys

import pytest

import symgrad

MARKED = """
import symgrad
from symgrad.testing import op

@op(formula="x*exp(-x)", domain="-5..5")
def ricker(x):
    return x * symgrad.exp(-x)
"""
WRONG = MARKED.replace("symgrad.exp(-x)", "symgrad.exp(-x) * 1.001")
TWO = "--symgrad-checks=linearity,value"


def ids(result):
    """The ids of the tests that were run, in order."""
    return [line.split(" ")[0] for line in result.outlines if "::" in line and line.split(" ")[1:2] in (["PASSED"], ["FAILED"], ["SKIPPED"])]


@pytest.fixture(autouse=True, scope="module")
def everything_is_imported():
    """A run inside a test forgets the modules that it imports: none of ours may be among them."""
    for found in pkgutil.walk_packages(symgrad.__path__, "symgrad."):
        importlib.import_module(found.name)


@pytest.fixture
def run(pytester):
    """Run pytest on the files that are there, in this process."""
    return lambda *arguments: pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)


@pytest.fixture
def module(pytester, request, monkeypatch):
    """Write a module that is no test file; its name, which no other test has."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(text):
        name = "module_" + "".join(c if c.isalnum() else "_" for c in request.node.name)
        pytester.makepyfile(**{name: text})
        return name

    return write
