"""The custom Functions that steps of programs over aliased tensors apply."""

from __future__ import annotations

from typing import Any


def functions(lib: Any, told: list, constant: bool) -> dict[str, Any]:
    """The Functions by name; `told` hears what their backward was given.

    With `constant` the copies that a forward made are constants for second derivatives, as they are in torch.
    """
    Function = lib.autograd.Function

    def note(name: str, *gs: Any) -> None:
        told.append((f"{name} {[None if g is None else tuple(g.shape) for g in gs]}", []))

    class Triple(Function):
        """x -> 3 x"""
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 3

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    class Squared(Function):
        """x -> x**2 of a saved x"""
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, = ctx.saved_tensors
            return 2 * x * g

    class Exponential(Function):
        """x -> exp(x) of a saved result, by setup_context"""
        @staticmethod
        def forward(x: Any) -> Any:
            return x.exp()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            y, = ctx.saved_tensors
            return y * g

    class Dirty(Function):
        """x -> 2 x, written to x"""
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class DirtyOfTwo(Function):
        """x, y -> 2 x, written to x, and x y"""
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            product = x * y
            ctx.save_for_backward(x.clone(), y.clone())
            x.mul_(2)
            ctx.mark_dirty(x)
            return x, product

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            x, y = (t.detach() if constant else t for t in ctx.saved_tensors)
            return g * 2 + h * y, h * x

    class Same(Function):
        """x -> x, the argument itself"""
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 5

    class Viewed(Function):
        """x -> a view of x"""
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.shape = x.shape
            return x.unsqueeze(0)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.reshape(ctx.shape) * 7

    class Two(Function):
        """x -> 2 x, 3 x"""
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            note("Two", g, h)
            return g * 2 + h * 3

    class TwoUndefined(Function):
        """x -> 2 x, 3 x, whose backward is given None where no gradient arrived"""
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            note("TwoUndefined", g, h)
            return h * 3 if g is None else g * 2 if h is None else g * 2 + h * 3

    class Constant(Function):
        """x -> 2 x, sign(x), the second without derivative"""
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y, s = x * 2, x.sign()
            ctx.mark_non_differentiable(s)
            return y, s

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            note("Constant", g, h)
            return g * 2

    class NoGradient(Function):
        """x, y -> x + y, whose gradient with respect to y is None"""
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            note("NoGradient", *(() if ctx.needs_input_grad[0] else (None,)))
            return x + y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g.sum_to_size(g.shape), None

    class Once(Function):
        """x -> x**2, differentiable once"""
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @lib.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    class Scaled(Function):
        """x, number -> number x"""
        @staticmethod
        def forward(ctx: Any, x: Any, number: float) -> Any:
            ctx.number = number
            return x * number

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.number, None

    class NoTensor(Function):
        """x -> a number"""
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 3.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    def fails(ctx: Any, g: Any) -> Any:
        raise ValueError("a backward fails")

    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    # x -> 2 x, whose backward returns nothing, two gradients, one of another shape, or a number, or raises
    doubling = {"Nothing": lambda ctx, g: None, "WrongCount": lambda ctx, g: (g, g), "WrongShape": lambda ctx, g: lib.stack([g, g, g, g, g]),
                "WrongObject": lambda ctx, g: 2.0, "Fails": fails}
    found = {name: type(name, (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})
             for name, backward in doubling.items()}
    written_out = (Triple, Squared, Exponential, Dirty, DirtyOfTwo, Same, Viewed, Two, TwoUndefined, Constant, NoGradient, Once, Scaled, NoTensor)
    return found | {function.__name__: function for function in written_out}
