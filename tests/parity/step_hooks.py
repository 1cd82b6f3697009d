"""What the hooks of programs over aliased tensors do, by the words of the steps that register them."""

from __future__ import annotations

from typing import Any

from tests.support.tables import table

from .asked import flat


def functions(lib: Any, told: list, constant: bool) -> dict[str, Any]:
    """The Functions by name; `told` hears what their backward was given.

    With `constant` the copies that a forward made are constants for second derivatives, as they are in torch.
    """
    def note(name: str, gs: tuple, result: Any) -> Any:
        told.append((f"{name} {[None if g is None else tuple(g.shape) for g in gs]}", []))
        return result

    def keep(ctx: Any, result: Any, *saved: Any) -> Any:
        ctx.save_for_backward(*saved)
        return result

    def dirty(ctx: Any, x: Any) -> Any:
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    def dirty_of_two(ctx: Any, x: Any, y: Any) -> Any:
        product = x * y
        ctx.save_for_backward(x.clone(), y.clone())
        return dirty(ctx, x), product

    def dirty_of_two_backward(ctx: Any, g: Any, h: Any) -> Any:
        x, y = (t.detach() if constant else t for t in ctx.saved_tensors)
        return g * 2 + h * y, h * x

    def viewed(ctx: Any, x: Any) -> Any:
        ctx.shape = x.shape
        return x.unsqueeze(0)

    def two_undefined(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def two_undefined_backward(ctx: Any, g: Any, h: Any) -> Any:
        return note("TwoUndefined", (g, h), h * 3 if g is None else g * 2 if h is None else g * 2 + h * 3)

    def one_constant(ctx: Any, x: Any) -> Any:
        y, s = x * 2, x.sign()
        ctx.mark_non_differentiable(s)
        return y, s

    def scaled(ctx: Any, x: Any, number: float) -> Any:
        ctx.number = number
        return x * number

    def fails(ctx: Any, g: Any) -> Any:
        raise ValueError("a backward fails")

    def twice(ctx: Any, x: Any) -> Any:
        return x * 2

    once = lib.autograd.function.once_differentiable
    table = {  # forward and backward
        "Triple": (lambda ctx, x: x * 3, lambda ctx, g: g * 3),
        "Squared": (lambda ctx, x: keep(ctx, x * x, x), lambda ctx, g: 2 * ctx.saved_tensors[0] * g),
        "Exponential": (lambda x: x.exp(), lambda ctx, g: ctx.saved_tensors[0] * g),  # of a saved result, by setup_context
        "Dirty": (dirty, lambda ctx, g: g * 2),  # 2 x, written to x
        "DirtyOfTwo": (dirty_of_two, dirty_of_two_backward),  # 2 x, written to x, and x y
        "Same": (lambda ctx, x: x, lambda ctx, g: g * 5),  # the argument itself
        "Viewed": (viewed, lambda ctx, g: g.reshape(ctx.shape) * 7),
        "Two": (lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: note("Two", (g, h), g * 2 + h * 3)),
        "TwoUndefined": (two_undefined, two_undefined_backward),
        "Constant": (one_constant, lambda ctx, g, h: note("Constant", (g, h), g * 2)),  # the second result has no derivative
        "NoGradient": (lambda ctx, x, y: note("NoGradient", () if ctx.needs_input_grad[0] else (None,), x + y),
                       lambda ctx, g: (g.sum_to_size(g.shape), None)),
        "Once": (lambda ctx, x: keep(ctx, x * x, x), once(lambda ctx, g: 2 * ctx.saved_tensors[0] * g)),
        "Scaled": (scaled, lambda ctx, g: (g * ctx.number, None)),
        "NoTensor": (lambda ctx, x: 3.0, lambda ctx, g: g),
        # 2 x, whose backward returns nothing, two gradients, one of another shape, or a number, or raises
        "Nothing": (twice, lambda ctx, g: None), "WrongCount": (twice, lambda ctx, g: (g, g)),
        "WrongShape": (twice, lambda ctx, g: lib.stack([g, g, g, g, g])), "WrongObject": (twice, lambda ctx, g: 2.0), "Fails": (twice, fails),
    }
    found = {}
    for name, (forward, backward) in table.items():
        members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        if name == "Exponential":
            members["setup_context"] = staticmethod(lambda ctx, inputs, output: ctx.save_for_backward(output))
        found[name] = type(name, (lib.autograd.Function,), members)
    return found


def _fails() -> Any:
    raise ValueError("a hook fails")


def _other(g: Any) -> Any:
    return g.float() if str(g.dtype).endswith("float64") else g.double()


def _cleared(p: Any) -> None:
    p.grad = None


TENSOR_HOOKS = table(globals(), "TENSOR_HOOKS")


def _scaled(gs: tuple) -> tuple:
    return tuple(None if g is None else g * 2 for g in gs)


NODE_HOOKS = table(globals(), "NODE_HOOKS")


def _noted(gs: tuple) -> tuple[str, list]:
    """What is known of gradients, but those of constants, among which torch does not count some numbers."""
    known = [g for g in gs if g is not None]
    return f"{[tuple(g.shape) for g in known]}", [x for g in known for x in flat(g)]


def tensor_hook(told: list, handles: dict[str, Any], t: Any, word: str, name: str) -> None:
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
