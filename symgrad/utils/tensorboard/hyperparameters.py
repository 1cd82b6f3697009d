"""The settings of an experiment in the form of TensorBoard's plugin for hyperparameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from symgrad.engine.tensor import Tensor
from symgrad.utils.tensorboard.protocol import protocol

__all__ = ["hyperparameters"]


def hyperparameters(settings: Mapping[str, Any], metrics: Mapping[str, Any], choices: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, bytes]]:
    """The tag and the content of each summary: what there is to be varied, the settings of this run, and its end."""
    given = {name: _plain(name, value) for name, value in settings.items() if value is not None}
    if unknown := [name for name in choices if name not in given]:
        raise TypeError(f"parameter: hparam_domain_discrete contains invalid key, {unknown[0]}, and has to be one of the settings")
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
    raise ValueError(f"value should be one of int, float, str, bool, or torch.Tensor: {name} is {type(value).__name__}")
