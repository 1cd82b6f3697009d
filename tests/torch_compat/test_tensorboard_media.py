"""SummaryWriter: pictures, sounds, arrays, curves and settings are what torch writes, and what is refused.

What torch writes is in tests/support/data/tensorboard_media.json, written by `python -m tests.torch_compat.test_tensorboard_media`.
"""

import errno
import io
import json
import os
import pathlib
import tempfile

import numpy as np
import pytest

import symgrad
from symgrad.utils.tensorboard import SummaryWriter
from tests.torch_compat.test_tensorboard import events

RECORDED = pathlib.Path(__file__).parents[1] / "support" / "data" / "tensorboard_media.json"
SHAPES = [((3, 5, 4), "CHW"), ((1, 5, 4), "CHW"), ((4, 5, 6), "CHW"), ((5, 4), "HW"), ((4, 5), "WH"), ((5, 4, 1), "HWC"), ((11, 3, 5, 4), "NCHW"),
          ((4, 5, 4, 3), "NHWC"), ((3, 5, 4, 1), "NHWC")]


def summaries(folder):
    return {v.tag: v for e in events(folder) for v in e.summary.value}


def plain(value):
    """A summary as values that can be compared: the pixels of a picture, not the bytes of its file."""
    from google.protobuf.json_format import MessageToDict
    from PIL import Image
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
    from tensorboard.util.tensor_util import make_ndarray

    if value.HasField("image"):
        picture = value.image
        return value.tag, picture.height, picture.width, picture.colorspace, np.asarray(Image.open(io.BytesIO(picture.encoded_image_string))).tolist()
    if value.HasField("tensor") and value.tensor.string_val == []:
        return value.tag, str(value.metadata), str(make_ndarray(value.tensor).dtype), make_ndarray(value.tensor).tolist()
    if value.metadata.plugin_data.plugin_name == "hparams":
        return value.tag, MessageToDict(HParamsPluginData.FromString(value.metadata.plugin_data.content))
    return value.tag, str(value)


def written(writer, folder, program, tensor):
    """What a program writes, as data that JSON can hold."""
    with writer(folder) as w:
        program(w, tensor)
    folders = [pathlib.Path(folder), *sorted(p for p in pathlib.Path(folder).iterdir() if p.is_dir())]
    return json.loads(json.dumps([(e.step, *plain(v)) for f in folders for e in events(f) for v in e.summary.value]))


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


PROGRAMS = {"images": images, "others": others, "settings": settings}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_written_is_what_torch_writes(name, tmp_path):
    assert written(SummaryWriter, tmp_path, PROGRAMS[name], symgrad.tensor) == json.loads(RECORDED.read_text())[name]


def test_vectors_for_the_projector(tmp_path):
    """The files, and the configuration that names them, as the projector reads both."""
    from google.protobuf import text_format
    from PIL import Image
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

    pictures = symgrad.arange(5).reshape(5, 1, 1, 1).expand(5, 3, 2, 2) / 5
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(symgrad.tensor([[1.0, 2.5], [3.0, 4.0]]), symgrad.tensor([7, 8]))
        writer.add_embedding(symgrad.eye(5), [(i, "ab") for i in range(5)], pictures, 12, "../layer", ["digit", "set"])
    first, second = text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(), ProjectorConfig()).embeddings
    assert (first.tensor_name, second.tensor_name) == ("default:00000", "../layer:00012") and not first.sprite.image_path
    assert (tmp_path / first.tensor_path).read_text() == "1.0\t2.5\n3.0\t4.0\n" and (tmp_path / first.metadata_path).read_text() == "7\n8\n"
    assert (tmp_path / second.metadata_path).read_text().splitlines()[:2] == ["digit\tset", "0\tab"]
    assert list(second.sprite.single_image_dim) == [2, 2] and (tmp_path / second.tensor_path).resolve().parent.parent == tmp_path / "00012"
    sprite = np.asarray(Image.open(tmp_path / second.sprite.image_path))  # three pictures in a row
    assert sprite.shape == (6, 6, 3) and sprite[::2, ::2, 0].ravel().tolist() == [0, 51, 102, 153, 204, 0, 0, 0, 0]


@pytest.mark.parametrize("call, error, message", [
    (lambda w: w.add_image("x", symgrad.ones(2, 3), dataformats="CHW"), AssertionError, "CHW.*2, 3"),
    (lambda w: w.add_image("x", symgrad.ones(2, 3, 3), dataformats="HHC"), AssertionError, "HHC"),
    (lambda w: w.add_image("x", symgrad.ones(2, 3, 3)), AssertionError, "not 2"),
    (lambda w: w.add_image("x", "file.png"), NotImplementedError, "file.png"),
    (lambda w: w.add_image("x", symgrad.ones(2, 3), dataformats="AB"), AssertionError, "AB"),
    (lambda w: w.add_audio("x", symgrad.ones(2, 3)), AssertionError, "not 2"),
    (lambda w: w.add_tensor("x", symgrad.ones(2, dtype=symgrad.bfloat16)), TypeError, "bfloat16"),
    (lambda w: w.add_scalar("x", symgrad.ones(2)), AssertionError, "x has shape"), (lambda w: w.add_scalar("x", "1.0"), NotImplementedError, "1.0"),
    (lambda w: w.add_histogram("x", symgrad.empty(0)), ValueError, "no element"),
    (lambda w: w.add_histogram("x", symgrad.ones(3), bins=[2.0, 3.0]), ValueError, "no element falls"),
    (lambda w: w.add_histogram_raw("x", 0, 1, 1, 1, 1, [1.0], [1, 2]), ValueError, "1 bucket_limits and 2"),
    (lambda w: w.add_custom_scalars_marginchart(["a", "b"]), AssertionError, "three tags"),
    (lambda w: w.add_graph(3), TypeError, "int"), (lambda w: w.add_hparams([], {}), TypeError, "hparam_dict"),
    (lambda w: w.add_hparams({}, 3), TypeError, "metric_dict"), (lambda w: w.add_hparams({"a": []}, {}), ValueError, "a is a list"),
    (lambda w: w.add_hparams({"a": 1}, {}, {"b": [1]}), TypeError, "'b'"), (lambda w: w.add_embedding(symgrad.ones(2)), AssertionError, "mat"),
    (lambda w: w.add_embedding(symgrad.ones(2, 2), [1]), AssertionError, "metadata has 1"),
    (lambda w: w.add_embedding(symgrad.ones(2, 2), label_img=symgrad.ones(1, 3, 2, 2)), AssertionError, "label_img has 1"),
    (lambda w: w.add_embedding(symgrad.ones(1, 2), [(1, 2)], metadata_header=["a"]), AssertionError, "1 labels"),
    (lambda w: w.add_embedding(symgrad.ones(1, 2), ["a\tb"]), ValueError, "tab")])
def test_refusals_write_nothing(call, error, message, tmp_path):
    with SummaryWriter(tmp_path) as writer, pytest.raises(error, match=message):
        call(writer)
    assert summaries(tmp_path) == {} and not [p for p in tmp_path.iterdir() if p.is_dir()]


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "inner"):
        with pytest.raises(OSError, match="the folder of the events cannot be written") as caught:
            SummaryWriter(folder)
        assert caught.value.filename == str(folder)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the superuser may write everywhere
    with pytest.raises(PermissionError, match="cannot be written") as caught:
        SummaryWriter(tmp_path / "closed")
    assert (caught.value.errno, caught.value.filename) == (errno.EACCES, str(tmp_path / "closed"))


def record():
    """Write what torch writes."""
    import torch
    from torch.utils.tensorboard import SummaryWriter

    found = {}
    for name, program in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            found[name] = written(SummaryWriter, folder, program, torch.tensor)
    RECORDED.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    record()
