"""The scripts of the examples and papers run, find what is known, and would say so if they did not."""

import inspect
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import symgrad

ROOT = Path(__file__).parents[2]
EXAMPLES, TRAINING, PAPERS = (sorted((ROOT / folder).glob("*.py")) for folder in ("examples", "examples/training", "papers"))
# What each example prints, and a change of its formula or its data after which it must fail.
ANSWERS = {
    "anharmonic_oscillator": ("lowest energy at g = 0.1: 0.559146327184", ("np.arange(states) + 0.5", "np.arange(states) + 0.501")),
    "black_scholes": ("price     10.450584", ("volatility * volatility / 2", "volatility * volatility / 2.001")),
    "burgers": ("largest residual", ("a**2 * t", "a**2 * t * 1.001")),
    "challenger": ("15.0429  standard error 7.3786", ("DISTRESS * z", "DISTRESS * z * 1.001")),
    "finite_elements": ("Hessian: tridiagonal, 999 x 999", ("slope @ slope / 2", "slope @ slope / 2.001")),
    "gamma_regression": ("standard error 0.0009275", ("symgrad.lgamma(shape) -", "1.001 * symgrad.lgamma(shape) -")),
    "gaussian_process": ("-log likelihood", ("factor.diagonal().log().sum()", "1.001 * factor.diagonal().log().sum()")),
    "helmholtz": ("largest relative error of the gradient", ("symgrad.sum(x * symgrad.log", "symgrad.sum(1.001 * x * symgrad.log")),
    "kalman": ("variance of the level     1469", ("transition @ spread @ transition.T + step", "transition @ spread @ transition.T + 1.001 * step")),
    "lennard_jones": ("lowest energy -16.505384", ("4.0 * symgrad.sum(", "4.000001 * symgrad.sum(")),
    "spectral_energy": ("energy 5.1050880620834", ("symgrad.sum(WAVES**2", "1.001 * symgrad.sum(WAVES**2")),
    "van_der_waals": ("p = 1, p' = 0, p'' = 0, p''' = -9", ("8.0 * T", "8.001 * T")),
}
# The same of the examples of training; what several processes compute is compared where these are tested.
TRAINED = {
    "digits": ("held-out digits are right", ("loss.backward()", "(-loss).backward()")),
    "digits_ddp": ("held-out digits are right, with", None),
    "hamiltonian_network": ("with a Hamiltonian network", ("slope[:, 1], -slope[:, 0]", "slope[:, 0], slope[:, 1]")),
    "many_hessians": ("convex at 299 of 441 points", ("400 * x**2 + 2 for", "400 * x**2 + 40 for")),
    "physics_informed": ("largest error of u", ("math.pi**2 * symgrad.sin", "1.01 * math.pi**2 * symgrad.sin")),
    "quadratic": ("after one Newton step", ("x**2 - 2.0 * x", "x**2 - 2.001 * x")),
    "train_ddp": ("epoch 30: mean squared error", None),
}
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
WITHOUT_FORMULA = {"anharmonic_oscillator": "of a matrix of expressions there is no formula in general"}


def each(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


def listed(folder, pattern):
    """The scripts that the README of a folder lists."""
    return sorted(re.findall(rf"^(?:\|.*)?\| `{pattern}\.py` \|", (ROOT / folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE))


def run(path, folder, *before):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "examples" / "training"), "OPENBLAS_NUM_THREADS": "1"}
    command = [*before, sys.executable, str(path)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, encoding="utf-8", env=environment, timeout=300)


def changed(path, change):
    """The source of a script with a change in one place."""
    source = path.read_text(encoding="utf-8")
    assert source.count(change[0]) == 1
    return source.replace(*change)


def notices(path, change):
    """Whether a script raises with a change of its formula."""
    with pytest.raises(AssertionError):
        exec(compile(changed(path, change), str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})


def test_every_script_is_tested_and_listed():
    for paths, known, folder, pattern in ((EXAMPLES, ANSWERS, "examples", r"(\w+)"), (TRAINING, TRAINED, "examples", r"training/(\w+)"),
                                          (PAPERS, WRONG, "papers", r"(\w+)")):
        assert [path.stem for path in paths] == sorted(known) == listed(folder, pattern)


@pytest.mark.sampled(1)
@each(EXAMPLES)
def test_an_example_finds_the_known_answer(path, tmp_path):
    found = run(path, tmp_path)
    assert found.returncode == 0 and ANSWERS[path.stem][0] in found.stdout, found.stderr


@pytest.mark.sampled(2)
@each(EXAMPLES)
def test_an_example_notices_a_wrong_formula(path):
    notices(path, ANSWERS[path.stem][1])


@pytest.mark.sampled(3)
@each(EXAMPLES)
def test_has_one_function_with_its_inputs_as_defaults(path):
    own = [f for f in runpy.run_path(str(path)).values() if inspect.isfunction(f) and f.__module__ == "<run_path>"]
    (function,) = [f for f in own if (p := inspect.signature(f).parameters) and all(q.default is not q.empty for q in p.values())]
    values = {name: p.default for name, p in inspect.signature(function).parameters.items()}
    leaves = {name: symgrad.tensor(value, requires_grad=True, symbol=name) for name, value in values.items()}
    y = function(**leaves)
    assert y.shape == ()
    if path.stem in WITHOUT_FORMULA:
        with pytest.raises(TypeError, match=WITHOUT_FORMULA[path.stem]):
            assert y.expr
        return
    assert y.expr is not None
    free = {s.name for s in y.expr.free_symbols}
    assert free == {"_".join([name, *map(str, i)]) for name, x in leaves.items() for i in ([()] if not x.ndim else [(i,) for i in range(len(x))])}


def test_the_flights_before_challenger():
    lines = (ROOT / "examples" / "data" / "challenger.csv").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if not line.startswith("#")][1:]
    assert len(rows) == 23 and sum(row.endswith(",1") for row in rows) == 7
    assert "Dalal" in "".join(line for line in lines if line.startswith("#"))


@pytest.mark.sweep
@each(TRAINING)
def test_training_reaches_what_it_says(path, tmp_path):
    launcher = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}") if path.stem == "digits_ddp" else None
    found = run(path, tmp_path, *((launcher, "-n", "2") if launcher else ()))
    assert found.returncode == 0 and TRAINED[path.stem][0] in found.stdout, found.stderr


@pytest.mark.sweep
@each([path for path in TRAINING if TRAINED[path.stem][1]])
def test_training_notices_what_is_wrong(path, tmp_path):
    (tmp_path / path.name).write_text(changed(path, TRAINED[path.stem][1]), encoding="utf-8")
    found = run(tmp_path / path.name, tmp_path)
    assert found.returncode and "AssertionError" in found.stderr


# Papers: the numbers are printed as the tables of their pages


def page(path):
    return path.with_suffix(".md").read_text(encoding="utf-8")


def table(text):
    """The rows of all tables, without the lines under their heads."""
    return [line for line in text.splitlines() if line.startswith("|") and set(line) - set("|-: ")]


def test_every_paper_has_a_page():
    stems = [path.stem for path in PAPERS]
    assert all(re.fullmatch(r"[a-z]+_\d{4}_[a-z_]+", stem) for stem in stems)
    assert stems == sorted(path.stem for path in (ROOT / "papers").glob("*.md") if path.stem != "README")


@pytest.mark.sweep
@each(PAPERS)
def test_a_page_shows_what_the_script_prints(path, capsys):
    runpy.run_path(str(path))["main"]()
    assert table(capsys.readouterr().out) == table(page(path)) != []


@each(PAPERS)
def test_a_page_has_its_parts(path):
    headings = re.findall(r"^##? (.+)$", page(path), re.MULTILINE)
    assert headings[1:] == ["Formulas", "Numbers", "What differs"]
    assert re.search(r"\b10\.\d{4,}/\S+|no DOI", page(path)) and "http" not in page(path)


@pytest.mark.sweep
@pytest.mark.sampled(1)
@each(PAPERS)
def test_a_paper_notices_a_wrong_formula(path):
    notices(path, WRONG[path.stem])
