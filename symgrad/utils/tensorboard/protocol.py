"""The parts of the package `tensorboard` that symgrad uses, imported on first use."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["protocol"]

MODULES = {
    "EventFileWriter": "tensorboard.summary.writer.event_file_writer",
    "Event": "tensorboard.compat.proto.event_pb2",
    "SessionLog": "tensorboard.compat.proto.event_pb2",
    "Summary": "tensorboard.compat.proto.summary_pb2",
    "SummaryMetadata": "tensorboard.compat.proto.summary_pb2",
    "HistogramProto": "tensorboard.compat.proto.summary_pb2",
    "TensorProto": "tensorboard.compat.proto.tensor_pb2",
    "TextPluginData": "tensorboard.plugins.text.plugin_data_pb2",
    "GraphDef": "tensorboard.compat.proto.graph_pb2",
    "NodeDef": "tensorboard.compat.proto.node_def_pb2",
    "VersionDef": "tensorboard.compat.proto.versions_pb2",
    **dict.fromkeys(("Category", "Chart", "Layout", "MarginChartContent", "MultilineChartContent"), "tensorboard.plugins.custom_scalar.layout_pb2"),
    **dict.fromkeys(("DataType", "Experiment", "HParamInfo", "MetricInfo", "MetricName", "Status"), "tensorboard.plugins.hparams.api_pb2"),
    **dict.fromkeys(("HParamsPluginData", "SessionEndInfo", "SessionStartInfo"), "tensorboard.plugins.hparams.plugin_data_pb2"),
    **dict.fromkeys(("EmbeddingInfo", "ProjectorConfig"), "tensorboard.plugins.projector.projector_config_pb2"),
    "tf": "tensorboard.compat",
    "PrCurvePluginData": "tensorboard.plugins.pr_curve.plugin_data_pb2",
}


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
