"""The pages show what their commands for functions of torch print, and the repair that is named is one."""

import doctest
import shlex

import pytest

from symgrad.cli import main
from tests.support.pages import ROOT, session, sessions

FOLDER = ROOT / "examples" / "foreign"
SESSIONS = [*sessions("torch"), *(("examples/foreign/README.md", *step) for step in session((FOLDER / "README.md").read_text(encoding="utf-8")))]


@pytest.mark.parametrize("page, command, shown", SESSIONS)
def test_the_page_shows_what_is_printed(page, command, shown, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(command)
    assert program == "symgrad" and main(arguments) == 1
    printed = capsys.readouterr().out
    assert doctest.OutputChecker().check_output(shown.partition("```")[0], printed, doctest.ELLIPSIS), printed


def test_the_repaired_function_is_verified(tmp_path, capsys):
    source = (FOLDER / "mymodel.py").read_text(encoding="utf-8")
    repaired = source.replace("ctx.slope = -torch.sigmoid(-margin)", "ctx.save_for_backward(margin)").replace(
        "return grad * ctx.slope", "(margin,) = ctx.saved_tensors\n        return -grad * Sigmoid.apply(-margin)")
    stable = '''

class Sigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.sigmoid(x) * torch.sigmoid(-x)
'''
    path = tmp_path / "mymodel.py"
    path.write_text(repaired + stable, encoding="utf-8")
    assert main(["check", f"{path}:loss", "--formula", "log(1+exp(-y*x))", "--points", "20"]) == 0, capsys.readouterr().out
    assert "loss (torch): verified" in capsys.readouterr().out
    path.write_text(repaired.replace("Sigmoid.apply", "torch.sigmoid"), encoding="utf-8")  # which torch differentiates with a loss of digits
    assert main(["check", f"{path}:loss", "--formula", "log(1+exp(-y*x))", "--points", "20", "--domain", "x=-3..3,y={-1,1}"]) == 0
    capsys.readouterr()
    assert main(["check", f"{path}:loss", "--formula", "log(1+exp(-y*x))", "--points", "20"]) == 0
    assert "loss (torch): imprecise" in capsys.readouterr().out
    assert main(["check", f"{path}:loss", "--formula", "log(1+exp(-y*x))", "--points", "20", "--strict"]) == 3
    assert "digits are lost" in capsys.readouterr().out
