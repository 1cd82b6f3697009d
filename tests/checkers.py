"""Checks of one op, of any kind: each a function of the op, its parameters and arrays, that raises AssertionError with what was computed.

`accuracy.check_accuracy` and `proofs.check_partials` are the checks of elementwise ops alone.
"""

import itertools

import numpy as np
import sympy
from accuracy import ulps
from mpmath import mpf

from symgrad import autograd
from symgrad.carriers import numeric, precise, symbolic
from symgrad.creation import tensor
from symgrad.recording import core

EPSILON = np.finfo(np.float64).eps
ROUNDINGS = 16  # roundings allowed in a sum, in units of the sum of the absolute values of its terms


def say(op, parameters, what, got, expected):
    """A message that names the op, and the values."""
    return f"{op.name}{parameters}: {what}: got {got}, expected {expected}"


def forward(op, carrier, xs, parameters):
    """The forward rule in a carrier."""
    return op.forward(carrier, *((tuple(xs),) if op.arity is None else xs), *parameters)


def pull(op, carrier, g, y, xs, parameters):
    """The pullback rule in a carrier, with broadcasts undone: one cotangent of each argument's shape; a condition's is None."""
    out = op.vjp(carrier, g, y, (*xs, *parameters), (True,) * len(xs))
    assert len(out) == len(xs), say(op, parameters, "number of cotangents", len(out), len(xs))
    found = []
    for c, x in zip(out, xs):
        if c is None and (carrier is precise or x.dtype.kind == "f"):
            c = carrier.zeros_like(x)
        found.append(c if c is None or c.shape == x.shape else carrier.sum_to_size(c, x.shape))
    return found


def push(op, carrier, ts, y, xs, parameters):
    """The pushforward rule in a carrier; None stands for a tangent that is zero."""
    out = op.jvp(carrier, ts, y, (*xs, *parameters))
    return carrier.broadcast_to(carrier.zeros_like(y) if out is None else out, y.shape)


def differentiable(xs):
    """The numbers of the arguments that have derivatives: those that are not conditions."""
    return [i for i, x in enumerate(xs) if x.dtype.kind == "f"]


def jacobian_sizes(op, y, xs, parameters):
    """|dy_j / dx_i| for each argument, as a matrix with a row for each element of y."""
    rows = [[] for _ in xs]
    for j in range(y.size):
        g = np.zeros(y.shape)
        g.flat[j] = 1.0
        for i, c in enumerate(pull(op, numeric, g, y, xs, parameters)):
            rows[i].append(np.zeros(xs[i].size) if c is None else np.abs(np.ravel(c)))
    return [np.array(r).reshape(y.size, x.size) for r, x in zip(rows, xs)]


def random_like(rng, x):
    """An array of the shape of another, far from zero."""
    return rng.uniform(0.5, 2.0, np.shape(x)) * rng.choice([-1.0, 1.0], np.shape(x))


def check_adjoint(op, parameters, xs, rng):
    """<g, jvp(t)> = <vjp(g), t>, for each argument by itself and for all of them, to 16 roundings of the summed absolute terms."""
    y = forward(op, numeric, xs, parameters)
    sizes = jacobian_sizes(op, y, xs, parameters)
    g = random_like(rng, y)
    pulled = pull(op, numeric, g, y, xs, parameters)
    every = differentiable(xs)
    for chosen in [[i] for i in every] + [every] * (len(every) > 1):
        ts = [random_like(rng, x) if i in chosen else None for i, x in enumerate(xs)]
        left = float(np.sum(g * push(op, numeric, ts, y, xs, parameters)))
        right = float(sum(np.sum(pulled[i] * ts[i]) for i in chosen))
        scale = sum(float(np.abs(g).ravel() @ sizes[i] @ np.abs(ts[i]).ravel()) for i in chosen)
        what = f"<g, jvp(t)> for arguments {chosen}"
        assert abs(left - right) <= ROUNDINGS * EPSILON * scale, say(op, parameters, what, left, f"<vjp(g), t> = {right}")


def check_linearity(op, parameters, xs, rng):
    """vjp(2 g - 3 h) = 2 vjp(g) - 3 vjp(h), and with g and h exchanged, to 16 roundings of the summed absolute terms.

    The second is needed where y is one number: |2 g - 3 h| may be 2 |g| - 3 |h|, but then |2 h - 3 g| is not 2 |h| - 3 |g|.
    """
    y = forward(op, numeric, xs, parameters)
    drawn = random_like(rng, y), random_like(rng, y)
    pulled = [pull(op, numeric, g, y, xs, parameters) for g in drawn]
    sizes = jacobian_sizes(op, y, xs, parameters)
    for (g, of_g), (h, of_h) in itertools.permutations(zip(drawn, pulled)):
        both = pull(op, numeric, 2 * g - 3 * h, y, xs, parameters)
        for i in differentiable(xs):
            apart = 2 * of_g[i] - 3 * of_h[i]
            scale = (np.ravel(2 * np.abs(g) + 3 * np.abs(h)) @ sizes[i]).reshape(xs[i].shape)
            assert np.all(np.abs(both[i] - apart) <= ROUNDINGS * EPSILON * scale), say(op, parameters, f"vjp {i} of a sum", both[i], apart)


def lifted(xs):
    """Arrays in the precise carrier."""
    return [precise.lift_value(x) for x in xs]


def condition(f, xs):
    """Σ |x_k df/dx_k|, elementwise, for a function of cells: what one rounding of each input does to it."""
    base, total, step = f(xs), 0, precise.context.mpf(10) ** -25
    for i, x in enumerate(xs):
        if isinstance(x.ravel()[0].item() if x.size else True, bool):
            continue
        for k in range(x.size):
            moved = x.copy()
            flat = moved.reshape((-1,))
            flat[k] = flat[k] * (1 + step)
            total = total + abs(f([*xs[:i], moved.reshape(x.shape), *xs[i + 1:]]) - base)
    return total / step


def compare(op, parameters, what, got, true, size, bar):
    """Every number within `bar` ULP of the truth, or of the size of the terms it is made of."""
    got, true = np.asarray(got), np.asarray(true)
    assert got.shape == true.shape, say(op, parameters, f"shape of the {what}", got.shape, true.shape)
    terms = None
    for at in np.ndindex(got.shape):
        a, b = float(got[at]), true[at]
        assert np.isfinite(a), say(op, parameters, f"{what} at {at}", a, b)
        if ulps(a - b, b) > bar:
            terms = np.asarray(size()) if terms is None else terms
            error = ulps(a - b, max(abs(terms[at]), abs(b)))
            assert error <= bar, say(op, parameters, f"{what} at {at}", repr(a), f"{b}: {error:.3g} ULP, at most {bar} are allowed")


def check_replay(op, parameters, xs, rng, bar=8):
    """Value, pullback and pushforward within 8 ULP of the same rules read with sixty digits, or of the size of the terms they add up.

    The second measure, Σ |input times derivative by that input|, is used only where the first fails; it is what rounding the inputs would do.
    """
    y, cells = forward(op, numeric, xs, parameters), lifted(xs)
    true = forward(op, precise, cells, parameters)
    if np.asarray(y).dtype.kind != "f":
        assert np.array_equal(np.asarray(y).astype(float), np.asarray(true).astype(float)), say(op, parameters, "value", y, true)
        return
    compare(op, parameters, "value", y, true, lambda: condition(lambda c: forward(op, precise, c, parameters), cells), bar)
    if not op.differentiable:
        return
    g = random_like(rng, y)
    pulled = pull(op, numeric, g, y, xs, parameters)
    every = differentiable(xs)
    for i in every:
        def pulled_back(c, i=i):
            return pull(op, precise, c[-1], forward(op, precise, c[:-1], parameters), c[:-1], parameters)[i]

        inputs = [*cells, precise.lift_value(g)]
        compare(op, parameters, f"vjp {i}", pulled[i], pulled_back(inputs), lambda f=pulled_back, at=inputs: condition(f, at), bar)
    ts = [random_like(rng, x) if i in every else None for i, x in enumerate(xs)]
    tangents = [precise.lift_value(ts[i]) for i in every]

    def pushed(c):
        given = iter(c[len(xs):])
        return push(op, precise, [next(given) if i in every else None for i in range(len(xs))], forward(op, precise, c[:len(xs)], parameters),
                    c[:len(xs)], parameters)

    inputs = [*cells, *tangents]
    compare(op, parameters, "jvp", push(op, numeric, ts, y, xs, parameters), pushed(inputs), lambda: condition(pushed, inputs), bar)


def check_second_order(op, parameters, xs, rng):
    """Gradient and Hessian-vector product of Σ w y, as users get them, against `sympy.diff` of the forward rule.

    Both within 64 ULP of the largest element, the product of the largest of the sums of absolute terms |H| |v|.
    """
    every = differentiable(xs)
    xs = [np.round(x * 16) / 16 if i in every else x for i, x in enumerate(xs)]
    tensors = [tensor(x, requires_grad=i in every) for i, x in enumerate(xs)]
    y = core(op)(*((tensors,) if op.arity is None else tensors), *parameters)
    w, vs = np.round(random_like(rng, y) * 8) / 8, [np.round(random_like(rng, xs[i]) * 8) / 8 for i in every]
    asked = [tensors[i] for i in every]
    gradient = autograd.grad((y * tensor(w)).sum(), asked, create_graph=True)
    along = sum((g * tensor(v)).sum() for g, v in zip(gradient, vs))
    product = autograd.grad(along, asked, retain_graph=True, materialize_grads=True)
    rows = [np.concatenate([np.ravel(h._value) for h in autograd.grad(g.reshape(-1)[k], asked, retain_graph=True, materialize_grads=True)])
            for g in gradient for k in range(g.numel())]
    terms = np.abs(np.array(rows)) @ np.abs(np.concatenate([v.ravel() for v in vs]))
    first, second = symbolic_derivatives(op, parameters, xs, w, {i: v for i, v in zip(every, vs)})
    for what, got, true, sizes in (("gradient", gradient, first, [0.0]), ("Hessian times a vector", product, second, terms)):
        got = np.concatenate([np.ravel(t._value) for t in got])
        scale = max(map(abs, [*true, *sizes]))
        for a, b in zip(got, true):
            error = ulps(a - b, scale)
            assert error <= 64, say(op, parameters, what, got, f"{[float(t) for t in true]}: {error:.3g} ULP of the largest")


def symbolic_derivatives(op, parameters, xs, w, vs):
    """The gradient of Σ w y and its derivative along v, by `sympy.diff`, with 40 digits."""
    names, cells, along, epsilon = [], [], {}, sympy.Symbol("epsilon", real=True)
    for i, x in enumerate(xs):
        if i not in vs:
            cells.append(symbolic.Expressions.lift(x))
            continue
        row = [sympy.Symbol(f"x{i}_{k}", real=True) for k in range(x.size)]
        names += row
        cells.append(symbolic.ExactExpressions.fill(row, x.shape))
        for s, value, v in zip(row, x.ravel().tolist(), vs[i].ravel().tolist()):
            along[s] = symbolic.exact_number(value) + epsilon * symbolic.exact_number(v)
    total = symbolic.sum(forward(op, symbolic, cells, parameters) * symbolic.ExactExpressions.lift(w)).item()
    first, second = [], []
    for s in names:
        d = sympy.diff(total, s).xreplace(along)
        first.append(mpf(d.subs(epsilon, 0).evalf(40)))
        second.append(mpf(sympy.diff(d, epsilon).subs(epsilon, 0).evalf(40)))
    return first, second


def _same(op, parameters, what, a, b, scale=0.0):
    """Equal, up to 16 roundings of the largest element, or of terms of a size that is given."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape and a.dtype == b.dtype, say(op, parameters, f"shape and dtype of the {what}", (a.shape, a.dtype), (b.shape, b.dtype))
    if a.dtype.kind != "f":
        assert np.array_equal(a, b), say(op, parameters, what, a, b)
        return
    scale = np.max(np.abs(b), initial=scale)
    assert np.all(np.abs(a - b) <= ROUNDINGS * EPSILON * scale), say(op, parameters, what, a, b)


def memory_layouts(x):
    """The same numbers in memory in other ways: every second element, backwards, by columns, and where writing is refused."""
    wide = np.repeat(x[..., None], 2, -1)[..., 0]
    backwards = np.flip(np.flip(x).copy())
    columns = np.array(x, order="F")
    locked = x.copy()
    locked.flags.writeable = False
    return {"strided": wide, "backwards": backwards, "by columns": columns, "read-only": locked}


def run(op, parameters, xs, g=None):
    """Value, pullback and pushforward with numbers; the tangents are the arguments themselves."""
    y = forward(op, numeric, xs, parameters)
    if not op.differentiable:
        return {"value": y}
    out = {"value": y, "jvp": push(op, numeric, [x if x.dtype.kind == "f" else None for x in xs], y, xs, parameters)}
    out |= {f"vjp {i}": c for i, c in enumerate(pull(op, numeric, y.copy() if g is None else g, y, xs, parameters)) if c is not None}
    return out


def check_layouts(op, parameters, xs):
    """The same results whatever the inputs look like in memory, and no input changed, not even one that could be."""
    plain = run(op, parameters, xs)
    size = 0.0
    if op.differentiable:
        sizes = jacobian_sizes(op, plain["value"], xs, parameters)
        size = max(np.max(m @ np.abs(x).ravel(), initial=0.0) for m, x in zip(sizes, xs))
        size = max([size] + [np.max(np.abs(plain["value"]).ravel() @ m, initial=0.0) for m in sizes])
    for name in memory_layouts(np.zeros(1)):
        moved = [memory_layouts(x)[name] for x in xs]
        before = [x.tobytes() for x in moved]
        try:
            found = run(op, parameters, moved)
        except RuntimeError as error:  # `view` promises to refuse what it could only show by a copy
            assert op.name == "view" and "view size is not compatible" in str(error), str(error)
            continue
        for what in plain:
            _same(op, parameters, f"{what} of {name} inputs", found[what], plain[what], size)
        for i, x in enumerate(moved):
            assert x.tobytes() == before[i], f"{op.name}{parameters}: argument {i} ({name}) was changed in place"


def check_mutation(op, parameters, xs):
    """Neither inputs nor cotangents are changed by value, pullback or pushforward."""
    y = forward(op, numeric, xs, parameters)
    g = np.ones_like(y)
    before = [x.tobytes() for x in (*xs, g)]
    run(op, parameters, xs, g)
    for i, x in enumerate((*xs, g)):
        assert x.tobytes() == before[i], f"{op.name}{parameters}: {'the cotangent' if i == len(xs) else f'argument {i}'} was changed in place"


def check_aliasing(op, parameters, xs):
    """A value shares memory with an input only where the op says that it is a view; gradients share memory with nothing a user holds."""
    tensors = [tensor(x, requires_grad=x.dtype.kind == "f" and op.differentiable) for x in xs]
    y = core(op)(*((tensors,) if op.arity is None else tensors), *parameters)
    for i, x in enumerate(tensors):
        assert op.view or not np.shares_memory(y._value, x._value), f"{op.name}{parameters}: the value shares memory with argument {i}"
    if not op.differentiable:
        return
    g = tensor(np.ones(y.shape))
    asked = [x for x in tensors if x.requires_grad]
    gradients = autograd.grad(y, asked, g)
    held = {"the cotangent": g, "the value": y, **{f"argument {i}": x for i, x in enumerate(tensors)}}
    for i, c in enumerate(gradients):
        for name, other in {**held, **{f"gradient {k}": d for k, d in enumerate(gradients) if k < i}}.items():
            assert not np.shares_memory(c._value, other._value), f"{op.name}{parameters}: gradient {i} shares memory with {name}"


def check_dtype(op, parameters, xs, dtype=np.float32):
    """Floats of a smaller dtype stay in it, in value, gradient and tangent."""
    small = [x.astype(dtype) if x.dtype.kind == "f" else x for x in xs]
    if op.name == "to_copy":
        return
    for what, found in run(op, parameters, small).items():
        kind = np.asarray(found).dtype
        assert kind.kind != "f" or kind == dtype, say(op, parameters, f"dtype of the {what}", kind, np.dtype(dtype))


def check_broadcast(op, parameters, xs):
    """The gradient of broadcast arguments is that of the expanded ones, summed over what was stretched."""
    shape = np.broadcast_shapes(*(x.shape for x in xs))
    whole = [np.broadcast_to(x, shape).copy() for x in xs]
    results = []
    for arrays in (xs, whole):
        tensors = [tensor(x, requires_grad=x.dtype.kind == "f") for x in arrays]
        y = core(op)(*tensors, *parameters)
        asked = [t for t in tensors if t.requires_grad]
        g = tensor(np.cos(np.arange(y._value.size, dtype=float)).reshape(y.shape))
        results.append((y._value, [d._value for d in autograd.grad(y, asked, g)]))
    (y, found), (whole_y, expected) = results
    _same(op, parameters, f"value for shapes {[x.shape for x in xs]}", y, whole_y)
    for x, a, b in zip([xs[i] for i in differentiable(xs)], found, expected):
        lead = b.ndim - x.ndim
        stretched = tuple(range(lead)) + tuple(k for k in range(lead, b.ndim) if x.shape[k - lead] == 1)
        total, scale = (np.sum(c, axis=stretched).reshape(x.shape) for c in (b, np.abs(b)))
        assert np.shape(a) == x.shape, say(op, parameters, "shape of a gradient", np.shape(a), x.shape)
        assert np.all(np.abs(a - total) <= ROUNDINGS * EPSILON * scale), say(op, parameters, f"gradient for shapes {[v.shape for v in xs]}", a, total)
