"""What the hooks of programs over aliased tensors do, by the words of the steps that register them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .asked import flat


def _fails() -> Any:
    raise ValueError("a hook fails")


def _other(g: Any) -> Any:
    return g.float() if str(g.dtype).endswith("float64") else g.double()


def _cleared(p: Any) -> None:
    p.grad = None


TENSOR_HOOKS: dict[str, Callable[[Any], Any]] = {
    "": lambda g: None,
    "double": lambda g: g * 2,
    "sine": lambda g: g.sin(),
    "cut": lambda g: g.detach(),
    "shape": lambda g: g.unsqueeze(0),
    "dtype": _other,
    "object": lambda g: 3.0,
    "fails": lambda g: _fails(),
    "once": lambda g: None,  # and removes itself
    "more": lambda g: None,  # and registers another one
    "post": lambda p: None,
    "post clears": _cleared,
    "post object": lambda p: 3.0,
    "post fails": lambda p: _fails(),
}


def _scaled(gs: tuple) -> tuple:
    return tuple(None if g is None else g * 2 for g in gs)


NODE_HOOKS: dict[str, Callable[[tuple], Any]] = {
    "": lambda gs: None,
    "double": _scaled,
    "undefined": lambda gs: (None,) * len(gs),
    "count": lambda gs: (*gs, None),
    "list": list,
    "shape": lambda gs: tuple(None if g is None else g.unsqueeze(0) for g in gs),
    "fails": lambda gs: _fails(),
    "pre": lambda gs: None,
    "pre double": _scaled,
    "pre undefined": lambda gs: (None,) * len(gs),
    "pre count": lambda gs: (*gs, None),
    "pre one": lambda gs: gs[0] if len(gs) == 1 else None,
    "pre fails": lambda gs: _fails(),
}


def _noted(gs: tuple) -> tuple[str, list]:
    """What is known of gradients, but those of constants, among which torch does not count some numbers."""
    known = [g for g in gs if g is not None]
    return f"{[tuple(g.shape) for g in known]}", [x for g in known for x in flat(g)]


def tensor_hook(told: list, handles: dict[str, Any], t: Any, word: str, name: str) -> None:
    """Register the hook of a tensor."""
    t.grad_fn  # torch crashes where a hook meets a view whose history is out of date
    acts = TENSOR_HOOKS[word]
    if word.startswith("post"):
        def after(p: Any) -> Any:
            if p.grad is not None:  # torch calls the hook also where no gradient arrived
                told.append((name, flat(p.grad)))
            return acts(p)

        handles[name] = t.register_post_accumulate_grad_hook(after)
        return

    def hook(g: Any) -> Any:
        if g is None:  # torch calls a hook also where nothing arrived at one output of several
            return None
        told.append((f"{name} {g.dtype}".replace("symgrad", "torch"), flat(g)))
        if word == "once":
            handles[name].remove()
        if word == "more":
            t.register_hook(lambda g: told.append((f"{name} more", [] if g is None else flat(g))))
        return acts(g)

    handles[name] = t.register_hook(hook)


def node_hook(told: list, handles: dict[str, Any], node: Any, word: str, name: str) -> None:
    """Register the hook of a node."""
    acts = NODE_HOOKS[word]

    def before(outer: tuple) -> Any:
        said, numbers = _noted(outer)
        told.append((f"{name} {said}", numbers))
        return acts(outer)

    def after(inner: tuple, outer: tuple) -> Any:
        said, numbers = _noted(inner)
        further, more = _noted(outer)
        told.append((f"{name} {said} {further}", numbers + more))
        return acts(inner)

    handles[name] = node.register_prehook(before) if word.startswith("pre") else node.register_hook(after)
