"""What the pages, the notebook and the docstrings of ops show is what happens: Python blocks, shell sessions, examples, and tables of facts."""

import doctest
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import nbclient
import nbformat
import pytest

import symgrad
from symgrad.engine import documentation as documenting
from symgrad.engine.documentation import described
from symgrad.engine.traced import FUNCTIONS, public_signature
from symgrad.graph.domains import POSITIVE
from symgrad.methods import extending
from tests.support.pages import BLOCK, GUIDE, PAGES, ROOT, blocks, failures, sessions

README = PAGES["README.md"]
TOURS = PAGES["symgrad/README.md"]
LONG = {f"examples/guide/{name}.md" for name in ("checking_your_gradient", "checking_other_code", "compile", "formulas", "new_ops")}  # seconds each
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text())


def shell(command):
    """What a command prints in a terminal of 150 columns, where the programs of this environment come first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PATH": path, "COLUMNS": "150"})
    return ran.stdout + ran.stderr


def table(heading, text):
    """The cells of the first table after a heading, without its first row."""
    lines = re.split(r"\n##", text.split(f"\n{heading}\n")[1])[0].splitlines()
    rows = [line for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.sweep) if name in LONG else name for name in PAGES])
def test_python_blocks_print_what_they_show(name):
    assert failures(PAGES[name], name) == ""


def test_each_tour_names_at_most_six_files_that_exist():
    tours = re.split(r"^## ", TOURS, flags=re.MULTILINE)[1:]
    assert [tour.partition("\n")[0] for tour in tours] == ["Add an op", "Follow `backward()`", "Change views", "Follow `func.hessian`"]
    for tour in tours:
        files = set(re.findall(r"`([\w/]+\.py)`", tour))
        assert 1 <= len(files) <= 6 and all((ROOT / name).is_file() for name in files), files


def test_a_python_block_that_lies_is_noticed():
    assert "Expected:\n    3\n" in failures("```python\n>>> 1 + 1\n3\n```\n")


@pytest.mark.parametrize("name", PAGES)
def test_every_block_is_one_that_runs(name):
    found = {(block["language"], block["mark"]) for block in BLOCK.finditer(PAGES[name])}
    only_here = {("shell", "check"), ("shell", "test"), ("shell", "sweep"), ("shell", "parity"), ("bibtex", None)} if name == "README.md" else set()
    only_here |= {("mermaid", None)} if name == "examples/guide/pictures.md" else set()  # tests/visual compares it with what its code draws
    assert {("python", None)} <= found <= only_here | {("python", None), ("console", None), ("console", "torch")}
    assert all(block["text"].startswith(">>> ") for block in blocks(PAGES[name], "python"))
    assert len(re.findall("^ *```", PAGES[name], re.MULTILINE)) == 2 * len(BLOCK.findall(PAGES[name]))


@pytest.mark.sweep
@pytest.mark.parametrize("command, shown", [step for _, *step in sessions()])
def test_shell_sessions_print_what_they_show(command, shown):
    printed = "".join(f"{line.rstrip()}\n" for line in shell(command).splitlines())
    assert doctest.OutputChecker().check_output(shown, printed, doctest.ELLIPSIS), printed


def test_there_are_exactly_two_commands_to_set_up():
    for mark in ("check", "test"):
        (block,) = blocks(README, "shell", mark)
        assert block["text"].count("\n") == 1 and block["text"].startswith("python3 -m venv .venv && .venv/bin/pip install ")


def test_the_readme_is_one_page_that_leads_to_all_others():
    assert len(README.encode()) <= 8192
    linked = set(re.findall(r"\(examples/guide/([\w.]+)\)", README))
    assert linked == {path.name for path in (ROOT / "examples" / "guide").iterdir() if path.is_file()}


@pytest.mark.parametrize("path", GUIDE, ids=lambda path: path.stem)
def test_each_page_of_the_guide_ends_with_what_can_go_wrong(path):
    assert re.findall(r"^## (.*)", path.read_text(encoding="utf-8"), re.MULTILINE)[-1] == "What can go wrong"


def test_the_figures_of_the_readme_are_those_of_the_benchmarks():
    measured = [re.split(r" *\| *", line)[1:4] for line in PAGES["examples/guide/benchmarks.md"].splitlines() if line.startswith("|")]
    assert all(row in measured for row in table("## Speed", README))


def test_the_architecture_names_the_layers_as_they_are():
    (contract,) = [contract for contract in CONFIGURATION["tool"]["importlinter"]["contracts"] if contract["type"] == "layers"]
    shown = [sorted(re.findall(r"`(\w+)`", row[0])) for row in table("## Layers", PAGES["examples/guide/architecture.md"])]
    assert shown == [sorted(re.split(r"\s*[|:]\s*", layer)) for layer in contract["layers"]]


OTHERS = ("CHANGELOG.md", "papers/README.md", "examples/README.md", "examples/foreign/README.md", "examples/new_op/README.md")
NAMED = PAGES | {name: (ROOT / name).read_text(encoding="utf-8") for name in OTHERS}


@pytest.mark.parametrize("page", NAMED)
def test_files_and_folders_named_in_the_pages_exist(page):
    for name in re.findall(r"`((?:symgrad|tests|papers|examples)/[\w./]*)`", NAMED[page]):
        assert (ROOT / name).exists(), name


def anchors(text):
    """The names by which the headings of a page are linked."""
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in re.findall(r"^#+ (.*)", text, re.MULTILINE)}


@pytest.mark.parametrize("page", NAMED)
def test_links_lead_somewhere(page):
    for link, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", BLOCK.sub("", NAMED[page])):
        target = (ROOT / page).parent / link if link else ROOT / page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), (link, anchor)


# The docstrings of lifted ops


LIFTED = {function.op.name: function for function in FUNCTIONS.values()}


def undocumented(op, text):
    """What is missing in the docstring of an op: sections, sentences for its parameters, an example, its output."""
    sections = ("Shapes", "Dtypes", "Returns", "Kind", *["Raises"] * (op.arity is not None))
    missing = [title for title in sections if not re.search(rf"^{title}: \S", text, re.MULTILINE)]
    listed = re.findall(r"^    (\w+): \S", text, re.MULTILINE)
    missing += [name for name in public_signature(op).parameters if name not in listed or described(op, name) is None]
    examples = doctest.DocTestParser().get_examples(text)
    return missing + ([] if examples and examples[-1].want.strip() else ["the output of an example"])


def lies(name, text):
    """What the examples of a docstring print where it is not what they show."""
    report = []
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    doctest.DocTestRunner().run(test, out=report.append)
    return "".join(report)


@pytest.mark.filterwarnings("ignore:torch.meshgrid")
@pytest.mark.sampled(110)
@pytest.mark.parametrize("name", LIFTED)
def test_docstrings_of_ops_are_complete_and_their_examples_print_what_they_show(name):
    function = LIFTED[name]
    assert undocumented(function.op, function.__doc__) == []
    assert lies(name, function.__doc__) == ""


def test_a_docstring_that_is_incomplete_or_lies_is_noticed():
    op, text = symgrad.sum.op, symgrad.sum.__doc__
    assert undocumented(op, text.replace("    keepdim:", "    other:")) == ["keepdim"]
    assert undocumented(op, text.replace("Shapes:", "Sizes:")) == ["Shapes"]
    assert undocumented(op, text.rpartition("\n")[0]) == ["the output of an example"]
    assert "Got:" in lies("sum", text.replace("tensor([5.", "tensor([4."))


def test_tables_of_documentation_name_ops_and_parameters_that_exist():
    names = {name for function in LIFTED.values() for name in public_signature(function.op).parameters}
    for key in documenting.sentences("parameters"):
        op, _, name = key.rpartition(".")
        assert name in (public_signature(LIFTED[op].op).parameters if op else names), key
    for table in ("shapes", "dtypes", "returns", "raises"):
        assert documenting.sentences(table) and set(documenting.sentences(table)) <= set(LIFTED)


@pytest.mark.sampled(110)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LIFTED)
def test_ops_raise_the_errors_of_their_docstrings(name):
    function, op = LIFTED[name], LIFTED[name].op
    x, count = symgrad.ones(2, 2), op.arity or 1
    if "TypeError for arguments of another kind" in function.__doc__:
        with pytest.raises(TypeError):
            function(*[object()] * count)
    if "RuntimeError for shapes that do not broadcast" in function.__doc__:
        with pytest.raises(RuntimeError):
            function(*[symgrad.ones(2 + i) for i in range(count)])
    if "IndexError for a `dim` out of range" in function.__doc__:
        at = symgrad.tensor([[0]])
        required = {"k": 1, "index": at, "src": x, "source": x, "value": 1.0, "indices": at, "start": 0, "length": 1,
                    "sizes": (1, 2), "split_sizes": [1, 1], "chunks": 2, "split_size_or_sections": 1, "indices_or_sections": 2, "repeats": 2,
                    "q": 0.5, "p": 2.0, "maxnorm": 1.0, "reduce": "prod"}
        parameters = public_signature(op).parameters
        without_default = [n for n in parameters if n in ("repeats", "src") or parameters[n].default is parameters[n].empty]
        given = {n: required[n] for n in without_default if n in required}
        if name in ("select", "select_scatter"):
            given["index"] = 0
        first = [[x, x]] if op.arity is None else [x] * (1 if given.keys() & {"src", "source"} else count)
        with pytest.raises(IndexError):
            function(*first, dim=99, **given)


def test_an_op_that_is_declared_has_the_same_documentation():
    try:
        symgrad.elementwise("documented_by_test", lambda xp, x, alpha=2: x * alpha, lambda xp, y, x, alpha: alpha, domain=POSITIVE, doc="alpha x.")
        text = extending.traced.documented_by_test.__doc__
    finally:
        extending._unregister("documented_by_test")
    lines = ["alpha x.", "", "Parameters:", "    x: a tensor or a number.", "    alpha: a parameter of the rule, which is not differentiated.", ""]
    assert text.splitlines()[:6] == lines
    assert "Shapes: the result has the shape of `x`." in text and "Dtypes: integers are converted to the default dtype." in text
    assert "Raises: TypeError" in text and text.endswith("Kind: elementwise. Domain: x in POSITIVE.")


NOTEBOOK = ROOT / "examples" / "guide" / "quickstart.ipynb"


def shown(cell):
    """What a cell shows, by the kind of text, without the largest errors of floats, which depend on the machine."""
    assert {output.output_type for output in cell.outputs} == {"execute_result"}, cell.outputs
    return [{kind: text.partition("Largest error of the floats")[0] for kind, text in output.data.items()} for output in cell.outputs]


@pytest.mark.sweep
def test_the_notebook_shows_what_is_stored():
    stored, run = (nbformat.read(NOTEBOOK, as_version=4) for _ in range(2))
    nbclient.NotebookClient(run, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    cells = [(cell, again) for cell, again in zip(stored.cells, run.cells, strict=True) if cell.cell_type == "code"]
    for cell, again in cells:
        assert shown(again) == shown(cell), cell.source
    kinds = {kind for cell, _ in cells for found in shown(cell) for kind in found}
    assert kinds == {"text/plain", "text/latex", "image/svg+xml", "text/html", "text/markdown"}


def test_the_notebook_has_no_traces_of_its_run():
    stored = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(stored)
    assert not any(cell.metadata for cell in stored.cells) and set(stored.metadata) == {"kernelspec", "language_info"}
    assert stored.cells[-1].source.startswith("## What can go wrong\n")
