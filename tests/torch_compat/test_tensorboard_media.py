"""SummaryWriter: what is read back of pictures, sounds, arrays and settings, and what is refused."""

import errno
import io
import os
import wave

import numpy as np
import pytest

import symgrad
from symgrad.utils.tensorboard import SummaryWriter
from tests.torch_compat.test_tensorboard import events


def summaries(folder):
    return {v.tag: v for e in events(folder) for v in e.summary.value}


def test_a_picture_is_read_back_pixel_by_pixel(tmp_path):
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (5, 4, 3), np.uint8)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("bytes", pixels, dataformats="HWC")
        writer.add_image("numbers", symgrad.tensor(pixels / 255.0, requires_grad=True), dataformats="HWC")
    found = summaries(tmp_path)
    for tag, tolerance in (("bytes", 0), ("numbers", 1)):
        read = np.asarray(Image.open(io.BytesIO(found[tag].image.encoded_image_string)))
        assert read.shape == (5, 4, 3) and np.abs(read.astype(int) - pixels).max() <= tolerance


def test_a_sound_is_read_back(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_audio("a", symgrad.tensor([0.0, 0.5, -2.0]), sample_rate=8000)
    with wave.open(io.BytesIO(summaries(tmp_path)["a"].audio.encoded_audio_string)) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getnframes()) == (8000, 1, 3)
        assert np.frombuffer(sound.readframes(3), "<i2").tolist() == [0, 16383, -32767]


def test_settings_of_an_experiment_with_their_types(tmp_path):
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams({"lr": 0.1, "flag": True, "name": "sgd", "none": None}, {"loss": symgrad.tensor(1.5)}, run_name="run")
    found = summaries(tmp_path / "run")
    start = HParamsPluginData.FromString(found["_hparams_/session_start_info"].metadata.plugin_data.content).session_start_info.hparams
    assert {name: getattr(value, value.WhichOneof("kind")) for name, value in start.items()} == {"lr": 0.1, "flag": True, "name": "sgd"}
    assert found["loss"].simple_value == 1.5


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
