"""A program of an installed symgrad alone, `python smoke.py FOLDER`: uses every part once, prints nothing, and exits with what is wrong.

symgrad must be imported from the FOLDER. The program has no `assert`, which -O removes, and needs no optional package.
"""

import contextlib
import importlib
import importlib.util
import io
import json
import math
import pkgutil
import sys
import tempfile
from pathlib import Path

import numpy as np

import symgrad
from symgrad import func, nn
from symgrad.cli import main
from symgrad.utils.checkpoint import checkpoint
from symgrad.utils.data import DataLoader, TensorDataset

OPTIONAL = {"pytest", "hypothesis", "flint", "matplotlib", "tensorboard", "torch", "jax", "autograd", "casadi", "mpi4py"}
SOURCE = '''
def pressure(v=1.0, T=1.0):
    return 8.0 * T / (3.0 * v - 1.0) - 3.0 / v**2
'''


def same(found, expected):
    if not np.allclose(np.asarray(found, float), expected, rtol=1e-12, atol=0.0):
        sys.exit(f"{found} instead of {expected}")


def is_from(folder):
    if not Path(symgrad.__file__).resolve().is_relative_to(folder):
        sys.exit(f"symgrad is {symgrad.__file__}, not in {folder}")


def modules():
    """Every module can be imported, or names the optional package that it lacks."""
    for module in pkgutil.walk_packages(symgrad.__path__, "symgrad."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name not in OPTIONAL or importlib.util.find_spec(error.name):
                raise
    if missing := [name for name in dir(symgrad) if not hasattr(symgrad, name)]:
        sys.exit(f"symgrad has no {missing}")


def derivatives():
    x = symgrad.tensor([0.5, 1.5], requires_grad=True)
    (g,) = symgrad.autograd.grad((x**3).sum(), x, create_graph=True)
    g.sum().backward()
    same(x.grad, [3.0, 9.0])
    same(func.hessian(lambda z: (z**3).sum())(x.detach()), [[3.0, 0.0], [0.0, 9.0]])
    same(func.vmap(func.grad(lambda z: z**2))(x.detach()), [1.0, 3.0])
    y = symgrad.tensor(2.0, requires_grad=True, symbol="y")
    z = y.exp() * y
    z.backward()
    if str(y.grad.expr) != "y*exp(y) + exp(y)":
        sys.exit(f"the formula of the gradient is {y.grad.expr}")
    same(checkpoint(lambda t: t.sin(), x, use_reentrant=False).detach(), [math.sin(0.5), math.sin(1.5)])


def training():
    weight = nn.Parameter(symgrad.zeros(1))
    rule = symgrad.optim.Adam([weight], lr=0.1)
    for (batch,) in DataLoader(TensorDataset(symgrad.ones(4, 1)), batch_size=2):
        rule.zero_grad()
        nn.functional.mse_loss(weight * batch, batch).backward()
        rule.step()
    if not 0.1 < weight.item() < 0.3:
        sys.exit(f"the weight is {weight}")


def compiled():
    """Without a compiler, too."""
    squares = symgrad.compile(lambda z: (z.sin() ** 2).sum())
    z = symgrad.tensor([0.0, 1.0])
    same(squares(z), math.sin(1.0) ** 2)
    same(squares.gradient(z), [0.0, math.sin(2.0)])
    same(np.diag(squares.hessian(z)), [2.0, 2 * math.cos(2.0)])


def files(folder):
    with open(folder / "saved", "wb") as file:
        symgrad.save({"weight": symgrad.ones(3)}, file)
    same(symgrad.load(folder / "saved")["weight"], [1.0, 1.0, 1.0])
    symgrad.save([symgrad.ones(2)], folder / "saved")
    same(symgrad.load(folder / "saved")[0], [1.0, 1.0])


def formulas():
    softplus = symgrad.op_from_sympy("smoke_softplus", "log(1+exp(x))")
    same(softplus(symgrad.tensor(800.0)), 800.0)
    verdict = symgrad.check(lambda x: x * symgrad.exp(x), 0.5, points=3).verdict
    if str(verdict) != "proved":
        sys.exit(f"x exp(x) is {verdict}")
    if "import" in symgrad.to_python(lambda x: x.sin(), ()).partition("def")[2]:
        sys.exit("the source imports inside the function")


def command_line(folder):
    (folder / "gas.py").write_text(SOURCE, encoding="utf-8")
    for command, word in ((["check", str(folder / "gas.py"), "--quiet", "--points", "3", "--json"], "proved"),
                          (["derive", "exp(sin(x))*y", "--at", "x=1,y=2", "--quiet", "--points", "3", "--json"], "proved"), (["--help"], None),
                          (["ops", "tanh"], None)):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = main(command)
        text = printed.getvalue()
        if code or not text or word is not None and word not in json.dumps(json.loads(text)):
            sys.exit(f"symgrad {' '.join(command)} exits with {code}: {text}")


if __name__ == "__main__":
    is_from(Path(sys.argv[1]).resolve())
    modules()
    derivatives()
    training()
    compiled()
    formulas()
    with tempfile.TemporaryDirectory() as made:
        files(Path(made))
        command_line(Path(made))
