"""Vectors with labels and pictures for TensorBoard's projector, as files beside the events."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from symgrad.utils.tensorboard.media import array_of, as_bytes, as_pixels, png
from symgrad.utils.tensorboard.protocol import protocol

__all__ = ["write_embedding"]


def _text(label: Any) -> str:
    text = str(label.item() if hasattr(label, "item") else label)
    if set(text) & set("\t\r\n"):
        raise ValueError(f"add_embedding: {text!r} has a tab or a line break, which separate labels")
    return text


def _labels(metadata: Sequence[Any], header: Sequence[str] | None) -> str:
    """The rows of labels; with a header there are several columns, and it is the first row."""
    rows = [[label] for label in metadata] if not header else [header, *metadata]
    if header and any(len(row) != len(header) for row in rows):
        raise AssertionError("len of header must be equal to the number of columns in metadata")
    return "".join("\t".join(map(_text, row)) + "\n" for row in rows)


def write_embedding(root: str, tag: str, step: int, mat: Any, metadata: Sequence[Any] | None, label_img: Any, header: Sequence[str] | None) -> Any:
    """Write the files of one embedding to a subfolder of `root`, and return its entry in the projector's configuration."""
    vectors = array_of(mat)
    if metadata is not None and len(vectors) != len(metadata):
        raise AssertionError("#labels should equal with #data points")
    if label_img is not None and len(vectors) != len(label_img):
        raise AssertionError("#images should equal with #data points")
    if vectors.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
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
