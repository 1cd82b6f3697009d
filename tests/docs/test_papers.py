"""The papers' scripts assert their numbers and print them as the tables of their pages, and would fail if a formula were wrong."""

import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "papers"
SCRIPTS = sorted(FOLDER.glob("*.py"))
# A change of each paper's formula after which its script must fail.
WRONG = {
    "baydin_2018_survey": ("symgrad.log(x[0]) +", "1.001 * symgrad.log(x[0]) +"),
    "bettencourt_2019_taylor_mode": ("[1.0] + [0.0]", "[1.0] + [0.001]"),
    "blondel_2022_implicit_differentiation": ("0.5 * theta * symgrad.sum", "0.5001 * theta * symgrad.sum"),
    "dangel_2025_collapsed_taylor": ("dy, dz = 1.0 - y**2", "dy, dz = 1.0 - 1.001 * y**2"),
    "griewank_1989_helmholtz": ("symgrad.sum(x * symgrad.log", "symgrad.sum(1.001 * x * symgrad.log"),
    "huckelheim_2024_pitfalls": ("x = 4 * x * (1 - x)", "x = 3 * x * (1 - x)"),
    "kakade_2018_kinks": ("return relu(x) - relu(-x)", "return relu(x) - 1.001 * relu(-x)"),
    "laue_2019_equivalence": ("sympy.diff(e, p) * tangents[p]", "2 * sympy.diff(e, p) * tangents[p]"),
    "laue_2020_tensor_calculus": ("symgrad.softplus(-labels", "symgrad.softplus(-1.001 * labels"),
    "pearlmutter_1994_hessian_vector": ("(1200.0 * here**2", "(1200.001 * here**2"),
    "siskind_2005_perturbation_confusion": ("e(lambda y: x * y)", "e(lambda y: x * x * y)"),
}
each = pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)


def page(path):
    return path.with_suffix(".md").read_text(encoding="utf-8")


def table(text):
    """The rows of all tables, without the lines under their heads."""
    return [line for line in text.splitlines() if line.startswith("|") and set(line) - set("|-: ")]


def test_every_script_has_a_page_and_a_row_of_the_index():
    stems = [path.stem for path in SCRIPTS]
    assert all(re.fullmatch(r"[a-z]+_\d{4}_[a-z_]+", stem) for stem in stems)
    assert stems == sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "README")
    assert stems == sorted(re.findall(r"^\|.*\| `(\w+)\.py` \|", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert stems == sorted(WRONG)


@pytest.mark.sweep
@each
def test_page_shows_what_the_script_prints(path, capsys):
    runpy.run_path(str(path))["main"]()
    assert table(capsys.readouterr().out) == table(page(path)) != []


@each
def test_page_has_its_parts(path):
    headings = re.findall(r"^##? (.+)$", page(path), re.MULTILINE)
    assert headings[1:] == ["Formulas", "Numbers", "What differs"]
    assert re.search(r"\b10\.\d{4,}/\S+|no DOI", page(path)) and "http" not in page(path)


@pytest.mark.sampled(4)
@each
def test_script_notices_a_wrong_formula(path):
    right, wrong = WRONG[path.stem]
    source = path.read_text(encoding="utf-8")
    assert source.count(right) == 1
    with pytest.raises(AssertionError):
        exec(compile(source.replace(right, wrong), str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})
