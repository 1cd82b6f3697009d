"""Pictures, figures, sounds, arrays, hyperparameters, and vectors with labels (embeddings) for TensorBoard."""

from __future__ import annotations

import importlib
import io
import math
import os
import sys
import wave
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from symgrad.engine.tensor import Tensor

COLUMNS = 8  # pictures in a row of several
TYPES = {"float16": "DT_HALF", "float32": "DT_FLOAT", "float64": "DT_DOUBLE", "int8": "DT_INT8", "int16": "DT_INT16", "int32": "DT_INT32",
         "int64": "DT_INT64", "uint8": "DT_UINT8", "uint16": "DT_UINT16", "bool": "DT_BOOL", "complex64": "DT_COMPLEX64",
         "complex128": "DT_COMPLEX128"}


def array_of(x: Any) -> np.ndarray:
    """A number, tensor or array as an array; raises NotImplementedError for anything else."""
    if isinstance(x, Tensor):
        return np.asarray(x._value)
    if isinstance(x, (np.ndarray, np.generic, int, float, complex, list)):
        return np.asarray(x)
    raise NotImplementedError(f"SummaryWriter: expected a number, a tensor or an array, and not {x!r:.40}")


class Media:
    """The methods of `SummaryWriter` for what is seen or heard, and for arrays."""

    log_dir: str

    def _summary(self, folder: str, step: Any, walltime: float | None, tag: str, plugin: str = "", content: bytes = b"", **value: Any) -> None:
        raise NotImplementedError

    def add_image(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None, dataformats: str = "CHW") -> None:
        """Add a picture of one, three or four channels, with its dimensions in the order of `dataformats`: "CHW", "HWC", "HW".

        Numbers are from 0 to 1, or integers of eight bits from 0 to 255; what is outside is clipped. Several pictures, in "NCHW" or "NHWC", are put
        side by side. Raises AssertionError for another number of dimensions or of channels.
        """
        pixels = as_bytes(as_pixels(array_of(img_tensor), dataformats))
        height, width, channels = pixels.shape
        self._summary(self.log_dir, global_step, walltime, tag, image=protocol.Summary.Image(
            height=height, width=width, colorspace=channels, encoded_image_string=png(pixels)))

    def add_images(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None, dataformats: str = "NCHW") -> None:
        """Add several pictures side by side, as `add_image` does."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None) -> None:
        """Add a figure of matplotlib, or several of one size side by side, as a picture; with `close` pyplot forgets them."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        pictures = []
        for each in figure if isinstance(figure, (list, tuple)) else [figure]:
            canvas = FigureCanvasAgg(each)
            canvas.draw()
            pictures.append(np.array(canvas.buffer_rgba())[..., :3])
            if close and "matplotlib.pyplot" in sys.modules:
                sys.modules["matplotlib.pyplot"].close(each)
        several = isinstance(figure, (list, tuple))
        self.add_image(tag, np.stack(pictures) if several else pictures[0], global_step, walltime, "NHWC" if several else "HWC")

    def add_audio(self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100, walltime: float | None = None) -> None:
        """Add a sound: samples from -1 to 1, of which what is outside is clipped. Raises AssertionError for more than one dimension."""
        array = array_of(snd_tensor).squeeze()
        if array.ndim != 1:
            raise AssertionError(f"add_audio: a sound has one dimension, and not {array.ndim}")
        samples = (array.clip(-1.0, 1.0) * (2**15 - 1)).astype("<i2")
        stream = io.BytesIO()
        with wave.open(stream, "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(sample_rate)
            sound.writeframes(samples.tobytes())
        self._summary(self.log_dir, global_step, walltime, tag, audio=protocol.Summary.Audio(
            sample_rate=sample_rate, num_channels=1, length_frames=len(samples), encoded_audio_string=stream.getvalue(), content_type="audio/wav"))

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Add an array of any shape, whole. Raises TypeError for a dtype that TensorBoard does not have."""
        array = array_of(tensor)
        if array.dtype.name not in TYPES:
            raise TypeError(f"add_tensor: TensorBoard has no dtype {array.dtype.name}; convert with .to(float32)")
        self._summary(self.log_dir, global_step, walltime, tag, "tensor", tensor=protocol.TensorProto(
            dtype=TYPES[array.dtype.name], tensor_shape={"dim": [{"size": n} for n in array.shape]}, tensor_content=array.tobytes()))

    def add_pr_curve(self, tag: str, labels: Any, predictions: Any, global_step: int | None = None, num_thresholds: int = 127, weights: Any = None,
                     walltime: float | None = None) -> None:
        """Add the curve of precision against recall, of labels 0 or 1 and the probabilities predicted for 1, at thresholds from 0 to 1."""
        label, predicted = array_of(labels).ravel().astype(bool), array_of(predictions).ravel().astype(np.float64)
        count = min(num_thresholds, 127)
        weight = np.ones(len(label)) if weights is None else np.broadcast_to(array_of(weights).ravel().astype(np.float64), label.shape)
        place = np.floor(predicted * (count - 1)).astype(int)
        positive, negative = (np.histogram(place, bins=count, range=(0, count - 1), weights=weight * kind)[0][::-1].cumsum()[::-1]
                              for kind in (label, ~label))
        missed = positive[0] - positive
        recall = positive / np.maximum(1e-7, positive + missed)
        self.add_pr_curve_raw(tag, positive, negative, negative[0] - negative, missed, positive / np.maximum(1e-7, positive + negative), recall,
                              global_step, count, walltime=walltime)

    def add_pr_curve_raw(self, tag: str, true_positive_counts: Any, false_positive_counts: Any, true_negative_counts: Any, false_negative_counts: Any,
                         precision: Any, recall: Any, global_step: int | None = None, num_thresholds: int = 127, weights: Any = None,
                         walltime: float | None = None) -> None:
        """Add a curve of precision against recall from its numbers at each threshold; `weights` has no effect."""
        rows = np.stack([array_of(row) for row in (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts,
                                                   precision, recall)]).astype(np.float32)
        content = protocol.PrCurvePluginData(version=0, num_thresholds=min(num_thresholds, 127)).SerializeToString()
        self._summary(self.log_dir, global_step, walltime, tag, "pr_curves", content, tensor=protocol.TensorProto(
            dtype="DT_FLOAT", float_val=rows.ravel().tolist(), tensor_shape={"dim": [{"size": n} for n in rows.shape]}))

    # Charts that join several scalars

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Add charts by category: each is a title with ["Multiline", tags] or ["Margin", (value, lower, upper)] of scalars."""
        categories = []
        for category, charts in layout.items():
            made = []
            for title, (kind, tags) in charts.items():
                if kind == "Margin":
                    if len(tags) != 3:
                        raise AssertionError(f"a chart with margins has three tags, for the value and its bounds, not {len(tags)}")
                    series = protocol.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
                    made.append(protocol.Chart(title=title, margin=protocol.MarginChartContent(series=[series])))
                else:
                    made.append(protocol.Chart(title=title, multiline=protocol.MultilineChartContent(tag=tags)))
            categories.append(protocol.Category(title=category, chart=made))
        tensor = protocol.TensorProto(dtype="DT_STRING", tensor_shape={}, string_val=[protocol.Layout(category=categories).SerializeToString()])
        self._summary(self.log_dir, None, None, "custom_scalars__config__", "custom_scalars", tensor=tensor)

    def add_custom_scalars_multilinechart(self, tags: Sequence[str], category: str = "default", title: str = "untitled") -> None:
        """Add a chart of several scalars."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags: Sequence[str], category: str = "default", title: str = "untitled") -> None:
        """Add a chart of a scalar with its lower and upper bound."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})


def as_bytes(pixels: np.ndarray) -> np.ndarray:
    """Pixels as integers from 0 to 255, from numbers between 0 and 1."""
    return pixels if pixels.dtype == np.uint8 else (pixels.astype(np.float32) * 255.0).clip(0.0, 255.0).astype(np.uint8)


def as_pixels(array: np.ndarray, dataformats: str, columns: int = COLUMNS) -> np.ndarray:
    """Pictures as one array by height, width and channel, at most `columns` in a row."""
    order = dataformats.upper()
    if len(set(order)) != len(order) or len(order) != array.ndim or not {"H", "W"} <= set(order) <= set("NCHW"):
        raise AssertionError(f"add_image: dataformats is {dataformats!r} for shape {array.shape}; name each dimension once: H, W, and C and N")
    for axis in "NC":
        if axis not in order:
            array, order = array[None], axis + order
    array = array.transpose([order.index(axis) for axis in "NHWC"])
    count, height, width, channels = array.shape
    if channels not in (1, 3, 4):
        raise AssertionError(f"a picture has 1, 3 or 4 channels, not {channels}; see dataformats, which is {dataformats}")
    if channels == 1:
        array = np.repeat(array, 3, axis=3)
    columns = min(count, columns)
    grid = np.zeros((math.ceil(count / columns) * height, columns * width, array.shape[3]), array.dtype)
    for i, picture in enumerate(array):
        top, left = i // columns * height, i % columns * width
        grid[top:top + height, left:left + width] = picture
    return grid


def png(pixels: np.ndarray) -> bytes:
    """The PNG of an array of bytes by height, width and channel, by Pillow, which the package `tensorboard` brings."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "png")
    return stream.getvalue()


def hyperparameters(settings: Mapping[str, Any], metrics: Mapping[str, Any], choices: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, bytes]]:
    """The tag and the content of each summary: what there is to be varied, the settings of this run, and its end."""
    given = {name: _plain(name, value) for name, value in settings.items() if value is not None}
    if unknown := [name for name in choices if name not in given]:
        raise TypeError(f"add_hparams: hparam_domain_discrete has {unknown[0]!r}, which is none of the settings")
    infos = []
    for name, (kind, _) in given.items():
        info = protocol.HParamInfo(name=name, type=protocol.DataType.Value(kind))
        if name in choices:
            info.domain_discrete.extend([_plain(name, choice)[1] for choice in choices[name]])
        infos.append(info)
    named = [protocol.MetricInfo(name=protocol.MetricName(tag=tag)) for tag in metrics]
    start = protocol.SessionStartInfo()
    for name, (kind, value) in given.items():
        field = {"DATA_TYPE_FLOAT64": "number_value", "DATA_TYPE_STRING": "string_value", "DATA_TYPE_BOOL": "bool_value"}[kind]
        setattr(start.hparams[name], field, value)
    for tag, part in (("experiment", {"experiment": protocol.Experiment(hparam_infos=infos, metric_infos=named)}),
                      ("session_start_info", {"session_start_info": start}),
                      ("session_end_info", {"session_end_info": protocol.SessionEndInfo(status=protocol.Status.Value("STATUS_SUCCESS"))})):
        yield f"_hparams_/{tag}", protocol.HParamsPluginData(version=0, **part).SerializeToString()


def _plain(name: str, value: Any) -> tuple[str, Any]:
    """The type of a setting, and its value as one of Python."""
    if isinstance(value, (Tensor, np.ndarray, np.generic)) and np.size(value) == 1:
        value = value.item()
    if isinstance(value, bool):
        return "DATA_TYPE_BOOL", value
    if isinstance(value, (int, float)):
        return "DATA_TYPE_FLOAT64", float(value)
    if isinstance(value, str):
        return "DATA_TYPE_STRING", value
    raise ValueError(f"add_hparams: {name} is a {type(value).__name__}; give a number, a text, a bool or a tensor of one")


def _text(label: Any) -> str:
    text = str(label.item() if hasattr(label, "item") else label)
    if set(text) & set("\t\r\n"):
        raise ValueError(f"add_embedding: {text!r} has a tab or a line break, which separate labels")
    return text


def _labels(metadata: Sequence[Any], header: Sequence[str] | None) -> str:
    """The rows of labels; with a header there are several columns, and it is the first row."""
    rows = [[label] for label in metadata] if not header else [header, *metadata]
    if header and any(len(row) != len(header) for row in rows):
        raise AssertionError(f"add_embedding: each row of metadata needs {len(header)} labels, as the header has")
    return "".join("\t".join(map(_text, row)) + "\n" for row in rows)


def write_embedding(root: str, tag: str, step: int, mat: Any, metadata: Sequence[Any] | None, label_img: Any, header: Sequence[str] | None) -> Any:
    """Write the files of one embedding to a subfolder of `root`, and return its entry in the projector's configuration."""
    vectors = array_of(mat)
    if vectors.ndim != 2:
        raise AssertionError(f"add_embedding: mat has shape {vectors.shape}; its rows are the vectors")
    for name, given in (("metadata", metadata), ("label_img", label_img)):
        if given is not None and len(given) != len(vectors):
            raise AssertionError(f"add_embedding: {name} has {len(given)} entries for {len(vectors)} vectors")
    folder = f"{str(step).zfill(5)}/{quote(tag, safe=' ').replace('.', '%2E')}"
    info = protocol.EmbeddingInfo(tensor_name=f"{tag}:{str(step).zfill(5)}", tensor_path=f"{folder}/tensors.tsv")
    files = {"tensors.tsv": "".join("\t".join(map(str, row)) + "\n" for row in vectors.tolist()).encode()}
    if metadata is not None:
        info.metadata_path, files["metadata.tsv"] = f"{folder}/metadata.tsv", _labels(metadata, header).encode()
    if label_img is not None:
        pictures = array_of(label_img)
        pixels = as_bytes(as_pixels(pictures, "NCHW", math.ceil(len(vectors) ** 0.5)))
        pixels = np.pad(pixels, ((0, max(0, pixels.shape[1] - pixels.shape[0])), (0, 0), (0, 0)))
        info.sprite.image_path, files["sprite.png"] = f"{folder}/sprite.png", png(pixels)
        info.sprite.single_image_dim.extend([pictures.shape[3], pictures.shape[2]])
    gfile = protocol.tf.io.gfile  # writes to addresses of stores, too
    gfile.makedirs(os.path.join(root, folder))
    for name, content in files.items():
        with gfile.GFile(os.path.join(root, folder, name), "wb") as file:
            file.write(content)
    return info


# The parts of the package `tensorboard` that symgrad uses, imported on first use
HOMES = {
    "summary.writer.event_file_writer": "EventFileWriter",
    "compat": "tf",
    "compat.proto.event_pb2": "Event SessionLog",
    "compat.proto.summary_pb2": "HistogramProto Summary SummaryMetadata",
    "compat.proto.tensor_pb2": "TensorProto",
    "compat.proto.graph_pb2": "GraphDef",
    "compat.proto.node_def_pb2": "NodeDef",
    "compat.proto.versions_pb2": "VersionDef",
    "plugins.custom_scalar.layout_pb2": "Category Chart Layout MarginChartContent MultilineChartContent",
    "plugins.hparams.api_pb2": "DataType Experiment HParamInfo MetricInfo MetricName Status",
    "plugins.hparams.plugin_data_pb2": "HParamsPluginData SessionEndInfo SessionStartInfo",
    "plugins.pr_curve.plugin_data_pb2": "PrCurvePluginData",
    "plugins.projector.projector_config_pb2": "EmbeddingInfo ProjectorConfig",
    "plugins.text.plugin_data_pb2": "TextPluginData",
}
MODULES = {name: f"tensorboard.{module}" for module, names in HOMES.items() for name in names.split()}


class _Protocol:
    """TensorBoard's messages and its writer of event files, by name."""

    def __getattr__(self, name: str) -> Any:
        if name not in MODULES:
            raise AttributeError(name)
        try:
            found = getattr(importlib.import_module(MODULES[name]), name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("tensorboard", "google"):
                raise
            raise ImportError("SummaryWriter writes with the package tensorboard, which is not installed: pip install 'symgrad[tensorboard]'",
                              name="tensorboard") from error
        setattr(self, name, found)
        return found


protocol: Any = _Protocol()
