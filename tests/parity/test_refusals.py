"""Bad input of modules, functions, optimizers, schedulers and loaders: an error of the type that it has in torch."""

import importlib
import re

import numpy as np
import pytest
import torch

import symgrad
from tests.parity.module_kit import names

FUNCTIONS = """
F.linear(x, w, 'a')
F.linear(None, w)
F.bilinear(x, x, w)
F.bilinear(x, x, w[0])
F.conv1d(sig, 'a')
F.conv1d(sig, w)
F.conv1d(sig, sig, stride=1.5)
F.conv1d(sig, sig, x[0].float())
F.conv2d(img, img, dilation=0)
F.conv_transpose2d(img, img, stride=None)
F.conv_transpose1d(sig, None)
F.max_pool1d(sig, 9)
F.max_pool1d(sig, 0)
F.max_pool1d(sig, 2, stride=-1)
F.max_pool1d(sig, 2, padding=3)
F.max_pool1d(sig, 2, padding=-1)
F.max_pool1d(sig, (1, 2))
F.max_pool2d(img, '2')
F.max_pool2d(img, 2, stride=-1)
F.max_pool2d(img, 2, ceil_mode=None, padding=9)
F.max_pool3d(img[None], 2, stride=-1)
F.avg_pool1d(sig, 9)
F.avg_pool1d(sig, 1.5)
F.avg_pool1d(sig, 2, stride=-1)
F.avg_pool1d(sig, kernel_size=2, padding='1')
F.avg_pool2d(img, [1, 'a'])
F.unfold(img, 0)
F.unfold(img, 2, padding=-1)
F.fold(sig, 4, 2, stride=0)
F.pad(sig, (1, 1), value=object())
F.pixel_shuffle(img, 1.5)
F.channel_shuffle(img, 'a')
F.group_norm(x, 1.5)
F.layer_norm(x, 1.5)
F.instance_norm(sig, x[0], x[0], momentum='2')
F.cosine_similarity(x, 2)
F.pairwise_distance(x, None)
F.embedding(x, w)
F.embedding(x, w, max_norm=1.0)
F.embedding(i + 9, w)
F.embedding(i, w, padding_idx=1.5)
F.embedding_bag(i, w, mode='a')
F.embedding_bag(i[0], w, t([1, 2]))
F.embedding_bag(i[0], w, t([0, 9]))
F.embedding_bag(i[0], w, w[:2, 0])
F.embedding_bag(i[0], w[0], t([0]))
F.embedding_bag(i, w, per_sample_weights=x[0])
F.multi_margin_loss(x, i[0])
F.multi_margin_loss(x, i)
F.multi_margin_loss(x, i[0, :2], weight=w[:2, 0])
F.multi_margin_loss(x, x[:, 0])
F.multi_margin_loss(sig, i)
F.cross_entropy(x, i[0], reduction=1.5)
F.scaled_dot_product_attention(x, x, x, dropout_p=2)
F.scaled_dot_product_attention(x, 'a', x)
F.glu(t(1.0))
F.glu(x, 1)
F.glu(x, 5)
F.prelu(x, x[0, :2])
F.softmax(x, 5)
F.mse_loss(x, w[:2].T)
F.gelu(x, approximate='a')
m.empty((3, 'a'))
m.empty(('a', 3))
m.zeros(3, 1.5)
x[7]
x[0].reshape(2)
x + w[:, :2]
setattr(x, 'grad', 1)
setattr(x, 'grad', np.ones(2))
setattr(x, 'grad', w)
""".strip().splitlines()
MODULES = """
nn.Linear(2)
nn.Linear('2', 4)
nn.Linear(3, 1.5)
nn.Linear(3, 4, nothing=1)
nn.Linear(3, 4).double()(img)
nn.Conv2d(1)
nn.Conv2d(1, 2, 'a')
nn.Conv2d(1, 2, 3)()
nn.ConvTranspose1d()
nn.Embedding(2, None)
nn.LSTM(3, 4)()
nn.MultiMarginLoss(p=3)
nn.MultiMarginLoss(weight=w)
nn.Threshold(1)
nn.MaxPool2d(2)()
nn.ReLU()()
nn.Sequential(1)
nn.Sequential(nn.Linear(3, 2))()
nn.ModuleDict({'a.b': nn.ReLU()})
nn.Module()(x)
nn.Module(1)
nn.Linear(2, 2).load_state_dict()
nn.Linear(2, 2).load_state_dict(1)
nn.Linear(2, 2).register_parameter('a', x)
nn.Linear(2, 2).register_buffer('forward', x)
nn.Linear(2, 2).get_submodule('a.b')
setattr(nn.Linear(2, 2), 'weight', w)
nn.utils.vector_to_parameters(x[0, :1], [x[0]])
nn.utils.clip_grad_norm_(1, 1.0)
nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), 'a', nn.ReLU())
nn.utils.prune.l1_unstructured(nn.Linear(2, 2), 'weight', 1.5)
nn.utils.rnn.pad_sequence([])
""".strip().splitlines()
TRAINING = """
optim.SGD([], lr=0.1)
optim.SGD(x, lr=0.1)
optim.SGD([1], lr=0.1)
optim.SGD([x * 2], lr=0.1)
optim.SGD([{'params': {x}}], lr=0.1)
optim.SGD([x], lr=-1)
optim.Adam([x], lr=-1)
optim.Adam([x], betas=(1.0, 0.9))
optim.Adam([x], lr=t([1.0, 2.0]))
optim.SGD([x], momentum=0, nesterov=True)
optim.SGD([x]).add_param_group({'params': x})
optim.SGD([x]).load_state_dict({'state': {}, 'param_groups': []})
optim.LBFGS([x]).step()
sched.StepLR(1, 1)
sched.LambdaLR(optim.SGD([x]), [len, len])
sched.ReduceLROnPlateau(optim.SGD([x]), mode='a')
sched.OneCycleLR(optim.SGD([x]), 0.1)
sched.ChainedScheduler([])
data.DataLoader([], shuffle=True)
data.DataLoader([1], batch_size=0)
data.DataLoader([1], num_workers=-1)
data.DataLoader([1], sampler=[0], shuffle=True)
data.DataLoader([1], prefetch_factor=2)
data.BatchSampler([1], 0, False)
data.TensorDataset(x, w)
data.ConcatDataset([])
data.random_split([1, 2], [1, 2])
list(data.DataLoader([x, w], batch_size=2))
""".strip().splitlines()
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


@pytest.mark.parametrize("text", [*FUNCTIONS, *MODULES, *TRAINING])
def test_types_are_those_of_torch(text):
    ours, theirs = refusal(symgrad, text), refusal(torch, text)
    assert isinstance(ours, type(theirs)) and str(ours), (ours, theirs)


def test_keys_of_a_state_are_listed():
    ours = str(refusal(symgrad, "nn.Linear(3, 2).load_state_dict({'weight': x, 'b.a': x, 'a': 1})"))
    assert re.search(r'(?s)missing.*"bias".*unexpected.*"b.a", "a"', ours.lower()), ours


@pytest.mark.parametrize("text", OURS)
def test_errors_name_the_function_and_the_value(text):
    error = refusal(symgrad, text)
    assert re.match(OURS[text], f"{type(error).__name__}: {error}"), error
