"""Vertices in groups: the modules that they are in, and runs of neighbours where there are too many.

A group is a run of the order in which the operations ran. So groups that are drawn as one box each have no cycle, and a module that was called
twice is two groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from symgrad.visual.formulas import number_of
from symgrad.visual.tracing import IO, Vertex

__all__ = ["Fold", "grouped", "opened", "ordered"]

RUN = 24  # the number of neighbours that are folded
MOST = 2000  # boxes of a picture


class Fold:
    """A group of vertices and of other groups, in order; `scope` is the path of a module without its own name, `count` the number of vertices."""

    __slots__ = ("title", "members", "scope", "count")

    def __init__(self, title: str, members: Sequence[Vertex | Fold], scope: str = ""):
        self.title, self.members, self.scope = title, members, scope
        self.count: int = sum([m.count if isinstance(m, Fold) else 1 for m in members])

    def vertices(self) -> Iterator[Vertex]:
        """All vertices of the group, in order."""
        stack: list[Vertex | Fold] = [self]
        while stack:
            member = stack.pop()
            if isinstance(member, Fold):
                stack += reversed(member.members)
            else:
                yield member


def ordered(vertices: Iterable[Vertex]) -> list[Vertex]:
    """The vertices in the order in which they ran: inputs first, and each other source before the operation that uses it first.

    Numbers, which stand in formulas, are left out.
    """
    vertices = list(vertices)
    found: dict[Vertex, None] = {}
    used = dict.fromkeys([v for vertex in vertices for v in vertex.operands])
    found |= dict.fromkeys([v for v in vertices if v.kind == IO and not v.operands and v in used])
    for vertex in vertices:
        if vertex.operands or vertex.op is not None:
            found |= dict.fromkeys([*(v for v in vertex.operands if number_of(v) is None), vertex])
    return list(found) or vertices


def _scope(vertex: Vertex) -> list[str]:
    scope = vertex.path.rpartition("/")[0]
    return scope.split("/") if scope and vertex.kind != IO else []


def grouped(vertices: Sequence[Vertex], title: str, depth: int = 0) -> Fold:
    """The tree of the groups of some vertices, which are in order, without the outermost `depth` scopes."""
    return Fold(title, _runs(_members([(_scope(v), v) for v in vertices], depth)))


def _members(found: Sequence[tuple[list[str], Vertex]], depth: int) -> list[Vertex | Fold]:
    members: list[Vertex | Fold] = []
    for name, run in groupby(found, lambda pair: pair[0][depth] if len(pair[0]) > depth else None):
        if name is None:
            members += [vertex for _, vertex in run]
        else:
            own = list(run)
            inner = _members(own, depth + 1)
            members += inner if len(inner) == 1 else [Fold(name, _runs(inner), "/".join(own[0][0][:depth]))]
    return members


def _runs(members: list[Vertex | Fold]) -> list[Vertex | Fold]:
    """The members themselves, or runs of them, and runs of runs, so that there are not too many."""
    while len(members) > 2 * RUN:
        runs = [members[i:i + RUN] for i in range(0, len(members), RUN)]
        members = [run[0] if len(run) == 1 else Fold("", run) for run in runs]
    return members


def opened(root: Fold, limit: int, depth: int | None) -> list[Vertex | Fold]:
    """What is drawn of a group: its groups are opened level by level while at most `limit` are drawn, or up to a depth.

    Raises ValueError for a depth at which more than two thousand are drawn.
    """
    drawn: list[Vertex | Fold] = list(root.members)
    level = 1
    while any([isinstance(m, Fold) for m in drawn]) and (depth is None or level < depth):
        following = [inner for m in drawn for inner in (m.members if isinstance(m, Fold) else (m,))]
        if depth is not None and len(following) > MOST:
            raise ValueError(f"graph: at depth {depth} more than {MOST} boxes are drawn; give a smaller depth, or fold= and no depth")
        if depth is None and len(following) > limit:
            break
        drawn = following
        level += 1
    return drawn
