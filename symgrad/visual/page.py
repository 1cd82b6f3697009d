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

from symgrad.visual.boxes import Content, View
from symgrad.visual.folding import Fold, opened
from symgrad.visual.svg import svg_of
from symgrad.visual.tracing import Vertex

__all__ = ["page_of"]

MOST = 4000  # boxes of a page, which is about six megabytes
INNER = 24  # boxes of the picture of a group, if it has fewer members
AROUND = 12  # operands from outside that the picture of a group shows
LEVELS = 300  # boxes of the picture of a depth


@cache
def _file(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def page_of(groups: Sequence[Fold], content: Content, drawn: Sequence[Vertex | Fold], caption: str) -> str:
    """The page; `drawn` is what its first picture shows of the groups."""
    pages = [_page(groups[0].title, -1, content.view(drawn), drawn, 0)]
    levels = _levels(groups, content, drawn, pages)
    order = {v: k for k, v in enumerate([v for group in groups for v in group.vertices()])}
    total = sum([len(page["boxes"]) for page in pages])
    waiting = [(i, k) for i, page in enumerate(pages) for k in range(len(page["items"]))]
    for i, k in waiting:
        item = pages[i]["items"][k]
        if isinstance(item, Fold):
            inner = opened(item, max(INNER, len(item.members)), None)
            known = next((n for n, page in enumerate(pages) if page.get("fold") is item), None)
            if known is None and total + len(inner) <= MOST:
                outside = _around(item, order)
                known, view = len(pages), content.view([*outside, *inner])
                for box in view.boxes[:len(outside)]:
                    box.kind = "outside"
                pages.append(_page(view_title(item), i, view, [*outside, *inner], len(outside)) | {"fold": item})
                total += len(view.boxes)
                waiting += [(known, n) for n in range(len(outside), len(view.boxes))]
            if known is not None:
                pages[i]["boxes"][k]["open"] = known
    for page in pages:
        page.pop("items")
        page.pop("fold", None)
    data = json.dumps({"pages": pages, "levels": levels, "caption": caption})
    script = _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    found = {"title": escape(f"{groups[0].title}: {caption}"), "hash": f"sha256-{digest}", "script": script,
             "data": data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: found[match[1]], _file("page.html"))


def view_title(fold: Fold) -> str:
    """The title of a group, or its size if it has none."""
    return fold.title or f"{fold.count:,} nodes"


def _page(title: str, parent: int, view: View, items: Sequence[Vertex | Fold], outside: int) -> dict[str, Any]:
    boxes = []
    for box in view.boxes:
        known = {key: value for key, value in (asdict(box) | {"type": box.type}).items() if value not in ("", 0, None, False)}
        boxes.append(known | {"operands": box.operands})
        known.pop("shape", None)
    return {"title": title, "parent": parent, "svg": svg_of(view), "boxes": boxes, "items": items}


def _levels(groups: Sequence[Fold], content: Content, drawn: Sequence[Vertex | Fold], pages: list[dict[str, Any]]) -> list[tuple[str, int]]:
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
            pages.append(_page(groups[0].title, -1, content.view(items), items, 0))
    if len(levels) < 2:
        del pages[1:]
        return []
    return levels


def _around(fold: Fold, order: Mapping[Vertex, int]) -> list[Vertex]:
    """The newest operands of a group that are not in it, oldest first."""
    inside = set(fold.vertices())
    return sorted({o for v in inside for o in v.operands if o in order} - inside, key=order.__getitem__)[-AROUND:]
