"""Bad input of modules, functions, optimizers, schedulers and loaders: an error of the type that it has in torch."""

import importlib
import re

import numpy as np
import pytest

import symgrad
from tests.parity.module_kit import names

OURS = {  # where torch tells of its inside, or accepts the call
    "F.max_pool2d()": "TypeError: max_pool2d", "F.lp_pool1d(None, 2.0, 2)": "TypeError: lp_pool1d.*input.*NoneType",
    "F.unfold(img, 1.5)": "TypeError: unfold.*kernel_size.*float", "F.unfold('a', 2)": "TypeError: unfold.*input.*str",
    "nn.MaxPool2d()": "TypeError: MaxPool2d.*kernel_size", "nn.BatchNorm1d(3)()": "TypeError: .*forward.*input",
    "nn.RNN(3, 4)(np.ones((5, 2, 3)))": "TypeError: RNN.*input.*numpy.ndarray",
    "nn.LSTMCell(3, 4)(np.ones((2, 3)))": "TypeError: LSTMCell.*input.*numpy.ndarray",
    "F.fractional_max_pool2d(img, 0, output_size=3)": "RuntimeError: fractional_max_pool2d.*kernel_size.*0",
    "F.embedding(i, w, padding_idx='a')": "TypeError: embedding.*padding_idx.*str",
    "setattr(x, 'grad', w.float()[:2, :3])": "RuntimeError: .*dtype", "optim.Adam([x], betas=0.9)": "TypeError: .*betas.*0.9",
}


def refusal(m, text):
    """The error of a text in one library."""
    words = {**names(m), "np": np, "x": m.arange(6.0).reshape(2, 3).double().requires_grad_(), "w": m.ones(4, 3).double(),
             "sig": m.ones(2, 4, 7).double(), "img": m.ones(2, 4, 6, 6).double(), "i": m.tensor([[0, 1, 2], [2, 1, 0]]),
             **{short: importlib.import_module(f"{m.__name__}.{name}") for short, name in
                (("optim", "optim"), ("sched", "optim.lr_scheduler"), ("data", "utils.data"))}}
    for name in ("parametrize", "prune", "rnn"):
        importlib.import_module(f"{m.__name__}.nn.utils.{name}")
    with pytest.raises(Exception) as caught:  # noqa: PT011  of any type, for it is compared
        eval(text, words)
    return caught.value


def test_keys_of_a_state_are_listed():
    ours = str(refusal(symgrad, "nn.Linear(3, 2).load_state_dict({'weight': x, 'b.a': x, 'a': 1})"))
    assert re.search(r'(?s)missing.*"bias".*unexpected.*"b.a", "a"', ours.lower()), ours


@pytest.mark.parametrize("text", OURS)
def test_errors_name_the_function_and_the_value(text):
    error = refusal(symgrad, text)
    assert re.match(OURS[text], f"{type(error).__name__}: {error}"), error
