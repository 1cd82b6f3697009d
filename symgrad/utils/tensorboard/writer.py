"""`SummaryWriter`: event files in a folder for TensorBoard."""

from __future__ import annotations

import datetime
import errno
import os
import socket
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from symgrad.dtypes.dtype import dtype_of
from symgrad.graph.node import Leaf
from symgrad.utils.tensorboard.media import Media, array_of, hyperparameters, protocol, write_embedding
from symgrad.visual.boxes import formula, text_of
from symgrad.visual.tracing import CONSTANT, Vertex

SMALLEST, LARGEST, GROWTH = 1e-12, 1e20, 1.1  # of TensorFlow's bins for histograms


class SummaryWriter(Media):
    """A writer of graphs, numbers, histograms, texts, pictures, sounds and settings to a folder for TensorBoard.

    Without `log_dir` the folder is runs/DATE_TIME_HOST with `comment` at its end. Existing events with a step from `purge_step` on
    are hidden. Events are queued, at most `max_queue` of them, are written at least every `flush_secs` seconds, and are all written by
    `flush` or `close`; a `with` block closes the writer.

    Raises ImportError if the package `tensorboard` is not installed, and OSError with the path of a folder that cannot be written.

    >>> import tempfile
    >>> import symgrad
    >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    ...     writer.add_graph(symgrad.nn.Linear(2, 1), symgrad.zeros(3, 2))
    ...     writer.add_scalar("loss", symgrad.tensor(0.5), global_step=1)
    """

    def __init__(self, log_dir: str | os.PathLike[str] | None = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
                 flush_secs: int = 120, filename_suffix: str = ""):
        if not log_dir:
            now = datetime.datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step, self.max_queue, self.flush_secs, self.filename_suffix = purge_step, max_queue, flush_secs, filename_suffix
        self._writers: dict[str, Any] = {}
        self._projector: Any = None  # the configuration of the embeddings so far
        self._writer(self.log_dir)

    def _writer(self, folder: str) -> Any:
        """The writer of one folder; after `close` a new one is made."""
        if folder not in self._writers:
            event_writer = protocol.EventFileWriter  # first, so that no folder is made where the package is missing
            _make(folder)
            self._writers[folder] = event_writer(folder, self.max_queue, self.flush_secs, self.filename_suffix)
            if self.purge_step is not None and folder == self.log_dir:
                step, self.purge_step = self.purge_step, None
                self._add(folder, step, None, file_version="brain.Event:2")
                self._add(folder, step, None, session_log=protocol.SessionLog(status=protocol.SessionLog.START))
        return self._writers[folder]

    def _add(self, folder: str, step: Any, walltime: float | None, **what: Any) -> None:
        event = protocol.Event(wall_time=time.time() if walltime is None else walltime, **what)
        if step is not None:
            event.step = int(step)
        self._writer(folder).add_event(event)

    def _summary(self, folder: str, step: Any, walltime: float | None, tag: str, plugin: str = "", content: bytes = b"", **value: Any) -> None:
        """Write one value under a tag, for a plugin of TensorBoard."""
        if plugin:
            value["metadata"] = protocol.SummaryMetadata(plugin_data={"plugin_name": plugin, "content": content})
        self._add(folder, step, walltime, summary=protocol.Summary(value=[protocol.Summary.Value(tag=tag, **value)]))

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.log_dir

    # Summaries

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True) -> None:
        """Add the graph of one call of a module, or of any function of tensors, with `input_to_model`: a tensor or a tuple of arguments.

        The module is called in evaluation mode, and its modes are restored. Its modules are the scopes; inputs, parameters, buffers and
        constants are nodes like operations. Each has its shape, its dtype and, as `expr`, its formula in terms of its operands or, if
        these are named tensors, their symbols. `verbose` prints the graph. `use_strict_trace` has no effect.

        Raises TypeError for a model that is not callable, and what the call raises.
        """
        from symgrad.visual.tracing import trace  # imports nn, which only this method needs

        if not callable(model):
            raise TypeError(f"add_graph: expected a module or a function, but got {type(model).__name__}")
        args = () if input_to_model is None else tuple(input_to_model) if isinstance(input_to_model, (tuple, list)) else (input_to_model,)
        vertices = trace(model, args)
        if verbose:
            print(*vertices, sep="\n")
        self._add(self.log_dir, None, None, graph_def=graph_definition(vertices).SerializeToString())

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None, new_style: bool = False,
                   double_precision: bool = False) -> None:
        """Add a number: a Python one, or the only element of a tensor or an array.

        It is written in single precision, with `new_style` and `double_precision` in double. Raises AssertionError for several elements.
        """
        self._scalar(self.log_dir, tag, scalar_value, global_step, walltime, new_style, double_precision)

    def _scalar(self, folder: str, tag: str, value: Any, step: Any, walltime: float | None, new_style: bool = False, double: bool = False) -> None:
        array = array_of(value).squeeze()
        if array.ndim:
            raise AssertionError(f"add_scalar: {tag} has shape {array.shape}; give one element")
        number = float(array)
        if not new_style:
            self._summary(folder, step, walltime, tag, simple_value=number)
        elif double:
            self._summary(folder, step, walltime, tag, "scalars", tensor=protocol.TensorProto(double_val=[number], dtype="DT_DOUBLE"))
        else:
            self._summary(folder, step, walltime, tag, "scalars", tensor=protocol.TensorProto(float_val=[number], dtype="DT_FLOAT"))

    def add_scalars(self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: int | None = None, walltime: float | None = None) -> None:
        """Add several numbers to one chart: each by its name, as a separate run in a subfolder."""
        walltime = time.time() if walltime is None else walltime
        for name, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, main_tag.replace("/", "_") + "_" + name)
            self._scalar(folder, main_tag, value, global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow", walltime: float | None = None,
                      max_bins: int | None = None) -> None:
        """Add the distribution of the elements of a tensor or an array.

        `bins` are TensorFlow's, whose widths grow by a tenth each, or an argument of `numpy.histogram`; beyond
        `max_bins` neighbours are merged. Raises ValueError for no elements.
        """
        array = array_of(values).ravel()
        if not array.size:
            raise ValueError("add_histogram: there is no element")
        counts, limits = np.histogram(array, _tensorflow_bins() if isinstance(bins, str) and bins == "tensorflow" else bins)
        if max_bins is not None and len(counts) > max_bins:
            starts = np.arange(0, len(counts), len(counts) // max_bins)
            counts, limits = np.add.reduceat(counts, starts), limits[[*starts, -1]]
        filled = np.flatnonzero(counts)
        if not filled.size:
            raise ValueError("add_histogram: no element falls into a bin; give bins that reach as far as the values")
        first, last = filled[0], filled[-1] + 1
        # TensorBoard identifies bins by their right ends: an empty bin marks where the first begins.
        histogram = protocol.HistogramProto(min=array.min(), max=array.max(), num=array.size, sum=array.sum(), sum_squares=array.dot(array),
                                            bucket_limit=limits[first:last + 1].tolist(), bucket=[0, *counts[first:last].tolist()])
        self._summary(self.log_dir, global_step, walltime, tag, histo=histogram)

    def add_histogram_raw(self, tag: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any, bucket_counts: Any,
                          global_step: int | None = None, walltime: float | None = None) -> None:
        """Add a distribution by its numbers: the right ends of the bins, and how many elements each has.

        Raises ValueError if these are not as many.
        """
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(f"add_histogram_raw: there are {len(bucket_limits)} bucket_limits and {len(bucket_counts)} bucket_counts")
        histogram = protocol.HistogramProto(min=min, max=max, num=num, sum=sum, sum_squares=sum_squares,
                                            bucket_limit=list(map(float, bucket_limits)), bucket=list(map(float, bucket_counts)))
        self._summary(self.log_dir, global_step, walltime, tag, histo=histogram)

    def add_hparams(self, hparam_dict: Mapping[str, Any], metric_dict: Mapping[str, Any],
                    hparam_domain_discrete: Mapping[str, Sequence[Any]] | None = None, run_name: str | None = None,
                    global_step: int | None = None) -> None:
        """Add the settings of one experiment, and the numbers that came out, as a run of its own in a subfolder, for TensorBoard's table.

        A setting is a number, a text, a bool or a tensor with one element; one that is None is left out. Raises TypeError for what is no dict, and
        ValueError for other settings.
        """
        for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
            if not isinstance(given, Mapping):
                raise TypeError(f"add_hparams: {name} is a {type(given).__name__}; give a dict")
        folder = os.path.join(self.log_dir, str(time.time()) if run_name is None else run_name)
        for tag, content in hyperparameters(hparam_dict, metric_dict, hparam_domain_discrete or {}):
            self._summary(folder, None, None, tag, "hparams", content)
        for tag, value in metric_dict.items():
            self._scalar(folder, tag, value, global_step, None)

    def add_text(self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None) -> None:
        """Add a text, which is shown as Markdown."""
        tensor = protocol.TensorProto(dtype="DT_STRING", string_val=[text_string.encode()], tensor_shape={"dim": [{"size": 1}]})
        self._summary(self.log_dir, global_step, walltime, f"{tag}/text_summary", "text", protocol.TextPluginData(version=0).SerializeToString(),
                      tensor=tensor)

    def add_embedding(self, mat: Any, metadata: Sequence[Any] | None = None, label_img: Any = None, global_step: int | None = None,
                      tag: str = "default", metadata_header: Sequence[str] | None = None) -> None:
        """Add vectors, the rows of `mat`, for TensorBoard's projector, as files in a subfolder for the step and the tag.

        `metadata` has a label for each row, or with `metadata_header` a sequence of labels, one for each column that it names; `label_img` has a
        picture for each, in the order "NCHW". Raises AssertionError for other numbers of labels, pictures, columns and dimensions, and ValueError for
        a label with a tab or a line break.
        """
        self._writer(self.log_dir)
        self._projector = protocol.ProjectorConfig() if self._projector is None else self._projector
        info = write_embedding(self.log_dir, tag, global_step or 0, mat, metadata, label_img, metadata_header)
        self._projector.embeddings.append(info)
        with protocol.tf.io.gfile.GFile(os.path.join(self.log_dir, "projector_config.pbtxt"), "wb") as file:
            file.write(str(self._projector).encode())

    # The files

    def flush(self) -> None:
        """Write all queued events."""
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        """Write all queued events and close the files; later events go to new files."""
        while self._writers:
            self._writers.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def _make(folder: str) -> None:
    """Make a folder for events, unless it is an address of a store."""
    if "://" in folder:
        return
    try:
        os.makedirs(folder, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise OSError(error.errno, f"SummaryWriter: the folder of the events cannot be written ({error.strerror})", folder) from None


def _tensorflow_bins() -> list[float]:
    positive = [SMALLEST]
    while positive[-1] * GROWTH < LARGEST:
        positive.append(positive[-1] * GROWTH)
    return [-x for x in reversed(positive)] + [0.0, *positive]


PRODUCER = 22  # the version of TensorFlow's graph format


def graph_definition(vertices: Sequence[Vertex]) -> Any:
    """TensorBoard's GraphDef of a trace."""
    return protocol.GraphDef(node=list(map(_node, vertices)), versions=protocol.VersionDef(producer=PRODUCER))


def _node(vertex: Vertex) -> Any:
    found = protocol.NodeDef(name=vertex.path, op=vertex.kind, input=[v.path for v in vertex.operands])
    for key, text in _notes(vertex).items():
        found.attr[key].s = text.encode()
    shape = found.attr["_output_shapes"].list.shape.add()
    for n in np.shape(vertex.value):
        shape.dim.add(size=n)
    return found


def _notes(vertex: Vertex) -> dict[str, str]:
    """The attributes of a vertex besides its shape."""
    notes = {}
    if hasattr(vertex.value, "dtype"):
        notes["dtype"] = dtype_of(vertex.value.dtype).name
    if vertex.kind == CONSTANT and np.size(vertex.value) <= 1:
        notes["value"] = text_of(vertex.value)
    if vertex.op is not None or vertex.operands and vertex.path.partition("/")[0] != "output":
        notes["expr"] = formula(vertex)
    if isinstance(vertex.node, Leaf) and vertex.node.symbol is not None:
        notes["expr"] = vertex.node.symbol
    if vertex.rest:
        notes["attr"] = ", ".join(f"{name}={text_of(value)}" for name, value in vertex.rest.items())
    if vertex.node is not None:
        notes["requires_grad"] = str(vertex.node.requires_grad)
        if not isinstance(vertex.node, Leaf) and vertex.node.requires_grad:
            notes["grad_fn"] = vertex.node.name()
    return notes
