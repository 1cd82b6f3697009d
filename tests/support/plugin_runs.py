"""Runs of pytest inside tests, on ops that are written to files."""

import sys

import pytest

import symgrad
import symgrad.scanning
import symgrad.testing.plugin.plugin
from symgrad.testing import check_op

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


@pytest.fixture(scope="session")
def everything_is_imported():
    """A run inside a test forgets the modules it imported: none of ours may be among them."""
    symgrad.accuracy(symgrad.exp, (0.0, 1.0), order=0, points=1, seconds=0.1, progress=False)
    check_op(lambda x: symgrad.where(x < 1.0, symgrad.log(x) * 1.0, x), formula="x", domain="positive", raise_exception=False)


@pytest.fixture
def run(everything_is_imported, pytester):
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
