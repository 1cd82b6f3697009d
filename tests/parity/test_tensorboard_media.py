"""Pictures, sounds, arrays, curves and settings that a SummaryWriter writes, beside those that torch writes."""

import io
import pathlib

import numpy as np
import pytest
import torch

import symgrad
from symgrad.utils import tensorboard
from tests.torch_compat.test_tensorboard import events

SHAPES = [((3, 5, 4), "CHW"), ((1, 5, 4), "CHW"), ((4, 5, 6), "CHW"), ((5, 4), "HW"), ((4, 5), "WH"), ((5, 4, 1), "HWC"), ((11, 3, 5, 4), "NCHW"),
          ((4, 5, 4, 3), "NHWC"), ((3, 5, 4, 1), "NHWC")]


def plain(value):
    """A summary as values that can be compared: the pixels of a picture, not the bytes of its file."""
    from PIL import Image
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
    from tensorboard.util.tensor_util import make_ndarray

    if value.HasField("image"):
        picture = value.image
        return value.tag, picture.height, picture.width, picture.colorspace, np.asarray(Image.open(io.BytesIO(picture.encoded_image_string))).tolist()
    if value.HasField("tensor") and value.tensor.string_val == []:
        return value.tag, str(value.metadata), make_ndarray(value.tensor).dtype, make_ndarray(value.tensor).tolist()
    if value.metadata.plugin_data.plugin_name == "hparams":
        return value.tag, HParamsPluginData.FromString(value.metadata.plugin_data.content)
    return value.tag, str(value)


def written(writer, folder, program, tensor):
    with writer(folder) as w:
        program(w, tensor)
    folders = [pathlib.Path(folder), *sorted(p for p in pathlib.Path(folder).iterdir() if p.is_dir())]
    return [(e.step, *plain(v)) for f in folders for e in events(f) for v in e.summary.value]


def images(w, tensor):
    random = np.random.default_rng(0)
    for i, (shape, order) in enumerate(SHAPES):
        w.add_image(f"float {i}", tensor(random.random(shape) * 1.2 - 0.1), i, dataformats=order)
        w.add_image(f"bytes {i}", tensor((random.random(shape) * 255).astype(np.uint8)), i, dataformats=order)
    w.add_images("several", tensor(random.random((9, 1, 2, 3))), 4)


def others(w, tensor):
    random = np.random.default_rng(1)
    labels, predictions = random.integers(0, 2, 80), random.random(80)
    w.add_histogram_raw("raw", 0, 1, 5, 2.5, 3.5, [0.0, 0.5, 1.0], [0, 2, 3], 1)
    w.add_audio("sound", tensor(np.sin(np.arange(100.0))), 1, 8000)
    w.add_pr_curve("curve", tensor(labels), tensor(predictions), 2)
    w.add_pr_curve("weighted", tensor(labels), tensor(predictions), 2, 20, weights=random.random(80))
    w.add_tensor("array", tensor(random.random((2, 3)).astype(np.float32)), 1)
    w.add_tensor("whole", tensor(np.array([1, 2, 3], np.int64)), 1)
    w.add_custom_scalars_multilinechart(["x", "y"], "category", "title")
    w.add_custom_scalars({"A": {"lines": ["Multiline", ["x", "y"]], "band": ["Margin", ["a", "b", "c"]]}})


def settings(w, tensor):
    w.add_hparams({"lr": 0.1, "n": 3, "opt": "sgd", "t": tensor(np.array([2.0])), "none": None}, {"loss": 1.5}, {"opt": ["sgd", "adam"]},
                  run_name="one")


@pytest.mark.parametrize("program", [images, others, settings], ids=lambda program: program.__name__)
def test_what_is_written_is_what_torch_writes(program, tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    ours = written(tensorboard.SummaryWriter, tmp_path / "ours", program, symgrad.tensor)
    theirs = written(SummaryWriter, tmp_path / "theirs", program, torch.tensor)
    assert ours == theirs
