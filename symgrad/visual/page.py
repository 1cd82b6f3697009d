"""A picture as an HTML page with a script of its own, which shows the groups one inside another."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from symgrad.visual.boxes import GraphView, NodeLabels
from symgrad.visual.folding import Fold, opened
from symgrad.visual.texts import svg_of
from symgrad.visual.tracing import Vertex

__all__ = ["page_of"]

MOST = 4000  # boxes of a page, which is about six megabytes
INNER = 24  # boxes of the picture of a group, if it has fewer members
AROUND = 12  # operands from outside that the picture of a group shows
LEVELS = 300  # boxes of the picture of a depth


@cache
def _file(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def page_of(groups: Sequence[Fold], content: NodeLabels, drawn: Sequence[Vertex | Fold], caption: str) -> str:
    """The page; `drawn` is what its first picture shows of the groups."""
    pages = [_page(groups[0].title, -1, content.view(drawn))]
    levels = _levels(groups, content, drawn, pages)
    order = {v: k for k, v in enumerate([v for group in groups for v in group.vertices()])}
    total = sum([len(page["boxes"]) for page in pages])
    number: dict[Fold, int] = {}
    waiting = [(i, k) for i, page in enumerate(pages) for k in range(len(page["items"]))]
    for i, k in waiting:
        item, box = pages[i]["items"][k], pages[i]["boxes"][k]
        if isinstance(item, Fold):
            inner = opened(item, max(INNER, len(item.members)), None)
            if item not in number and total + len(inner) <= MOST:
                outside = _around(item, order)
                view = content.view([*outside, *inner])
                for each in view.boxes[:len(outside)]:
                    each.kind = "outside"
                number[item] = len(pages)
                waiting += [(len(pages), n) for n in range(len(outside), len(view.boxes))]
                pages.append(_page(box["name"], i, view))
                total += len(view.boxes)
            if item in number:
                box["open"] = number[item]
    for page in pages:
        page.pop("items")
    data = json.dumps({"pages": pages, "levels": levels, "caption": caption})
    script = _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    found = {"title": escape(f"{groups[0].title}: {caption}"), "hash": f"sha256-{digest}", "script": script,
             "data": data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: found[match[1]], _file("page.html"))


def _page(title: str, parent: int, view: GraphView) -> dict[str, Any]:
    boxes = []
    for box in view.boxes:
        known = {key: value for key, value in asdict(box).items() if key != "shape" and value not in ("", 0, None, False)}
        boxes.append(known | {"type": box.type})
    return {"title": title, "parent": parent, "svg": svg_of(view), "boxes": boxes, "items": view.items}


def _levels(groups: Sequence[Fold], content: NodeLabels, drawn: Sequence[Vertex | Fold], pages: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """The pictures of all depths that are not too large, appended to `pages`; none if there is one depth."""
    levels, before = [], None
    for depth in range(1, 20):
        try:
            items = [item for group in groups for item in opened(group, 1, depth)]
        except ValueError:
            break
        if len(items) > LEVELS or items == before:
            break
        before = items
        if items == list(drawn):
            levels.append((str(depth), 0))
        else:
            levels.append((str(depth), len(pages)))
            pages.append(_page(groups[0].title, -1, content.view(items)))
    if len(levels) < 2:
        del pages[1:]
        return []
    return levels


def _around(fold: Fold, order: Mapping[Vertex, int]) -> list[Vertex]:
    """The newest operands of a group that are not in it, oldest first."""
    inside = set(fold.vertices())
    return sorted({o for v in inside for o in v.operands if o in order} - inside, key=order.__getitem__)[-AROUND:]
