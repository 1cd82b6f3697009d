"""Ops of JAX that are wrong for calls of a rare kind, or right where a check may accuse them; `symgrad.testing` attacks them as ops of JAX.

Compiled code runs no Python: a thread changes nothing in it, and what Python keeps is read once for each shape.
"""

from tests.power.power_entries import Entry, made

try:
    import jax
    import jax.numpy as jnp
    from jax.custom_batching import custom_vmap
    from jax.custom_derivatives import SymbolicZero
except ImportError:  # then they stand in the table, and are not attacked
    pass

WRONG: dict[str, Entry] = {}
RIGHT: dict[str, Entry] = {}
VECTOR, WIDE, SQUARE, PAIR = ((5,),), ((3, 4),), ((3, 3),), ((3,), (3,))
SINGLE = {"dtypes": ("float32",)}


def of_jax(table, name, category, says, make, **claims):
    made(table, f"{name}, JAX", category, says, framework="jax", **claims)(make)


def plain(name, category, says, function, **claims):
    of_jax(WRONG, name, category, says, lambda: function, **claims)


def pulled(forward, pullback):
    """A `custom_vjp` of a forward `(*xs)` and a pullback `(g, *xs)`."""
    f = jax.custom_vjp(forward)
    f.defvjp(lambda *xs: (f(*xs), xs), lambda xs, g: pullback(g, *xs))
    return f


def summed(g, x):
    """A gradient summed over the axes along which an argument was stretched."""
    return jax.vjp(lambda x: jnp.broadcast_to(x, g.shape), x)[1](g)[0]


def stated(name, category, says, *rules, **claims):
    of_jax(WRONG, name, category, says, lambda: pulled(*rules), **claims)


# stacks of matrices
stated("stack transposed", "stacks", "the gradient by a does not transpose b of a stack", lambda a, b: a @ b, lambda g, a, b: (
    g @ (b.mT if b.ndim == 2 else b), a.mT @ g), shapes=(*SQUARE, *SQUARE), formula=lambda xp, a, b: xp.matmul(a, b))
stated("symmetric part of a stack", "stacks", "of a stack the gradient is not made symmetric", lambda x: (x + x.mT) / 2, lambda g, x: (
    (g + g.mT) / 2 if x.ndim == 2 else g,), shapes=SQUARE)
stated("trace of the first axes", "stacks", "the gradient stands on the diagonal of the first matrix alone",
       lambda x: jnp.trace(x, axis1=-2, axis2=-1), lambda g, x: (g[..., None, None] * jnp.eye(3, dtype=x.dtype) * (
           1 if x.ndim == 2 else (jnp.arange(len(x)) == 0).reshape(-1, *[1] * (x.ndim - 1)).astype(x.dtype)),), shapes=SQUARE)
plain("other triangle of a stack", "stacks", "of a stack the upper triangle", lambda x: jnp.tril(x) if x.ndim == 2 else jnp.triu(x),
      shapes=SQUARE, formula=lambda xp, x: xp.tril(x, 0))

# batches above some size
stated("beyond 32 rows", "batches", "the gradient of rows after the 32nd is 0", lambda x: (x * x).sum(-1), lambda g, x: (
    2 * g[..., None] * x * (jnp.arange(len(x)) < 32).astype(x.dtype).reshape(-1, *[1] * (x.ndim - 1)),), shapes=((4, 3),))
plain("long vectors", "batches", "the softmax of more than 16 elements is that of blocks of 16", lambda x: jax.nn.softmax(x) if len(
    x) <= 16 else jnp.concatenate([jax.nn.softmax(x[k:k + 16]) for k in range(0, len(x), 16)]), shapes=((4,),),
      formula=lambda xp, x: xp.softmax(x, (0,)))
plain("many rows", "batches", "cos for sin where the first of several axes has more than 64 entries", lambda x: jnp.cos(
    x) if x.ndim > 1 and len(x) > 64 else jnp.sin(x), formula="sin(x)")
stated("128 in a block", "batches", "the gradient of the cumulative sum starts again after 128 elements", lambda x: jnp.cumsum(x), lambda g, x: (
    jnp.concatenate([jnp.cumsum(g[k:k + 128][::-1])[::-1] for k in range(0, len(g), 128)]),), shapes=VECTOR)

# values that tie inside a reduction or a sort
stated("all of the largest", "ties", "each of several largest elements gets the whole gradient", lambda x: x.max(), lambda g, x: (
    g * (x == x.max()).astype(x.dtype),), shapes=VECTOR)
stated("sort by comparing", "ties", "the gradient of the sorted array is taken at the place of each value", lambda x: jnp.sort(x), lambda g, x: (
    g[(x[None] < x[:, None]).sum(1)],), shapes=((4,),))
stated("median of equals", "ties", "the gradient of the median is lost where it occurs twice", lambda x: jnp.sort(x)[2], lambda g, x: (
    g * (x == jnp.sort(x)[2]).astype(x.dtype) * ((x == jnp.sort(x)[2]).sum() == 1),), shapes=VECTOR)
stated("rowwise minimum", "ties", "a tie in a row is divided by the ties of all rows", lambda x: x.min(1), lambda g, x: (g[:, None] * (
    x == x.min(1, keepdims=True)).astype(x.dtype) / (1 + ((x == x.min(1, keepdims=True)).sum(1) > 1).sum()),), shapes=WIDE)


# broadcast and without a gradient
def of_two(forward, by_first, by_second, mistake):
    """A `custom_jvp` of two arguments, whose tangent by the first is doubled where `mistake(a, b)` says so and the second is a constant."""
    f = jax.custom_jvp(forward)

    def rule(xs, ts):
        (a, b), (s, t) = xs, ts
        y = f(a, b)
        constant = type(t) is SymbolicZero
        first = jnp.zeros_like(y) if type(s) is SymbolicZero else s * by_first(a, b) * (2 if constant and mistake(a, b) else 1)
        return y, (first + (0 if constant else t * by_second(a, b))).astype(y.dtype)

    f.defjvp(rule, symbolic_zeros=True)
    return f


def of_constant(name, says, *rules, **claims):
    of_jax(WRONG, name, "broadcast", says, lambda: of_two(*rules), **claims)


of_constant("constant stretched", "a doubled gradient where b is stretched and has no gradient", lambda a, b: a * b, lambda a, b: b, lambda a, b: a,
            lambda a, b: b.size < a.size, formula="a*b")
of_constant("constant number", "a doubled gradient where b is one number without a gradient", lambda a, b: a * jnp.exp(b), lambda a, b: jnp.exp(b),
            lambda a, b: a * jnp.exp(b), lambda a, b: b.ndim == 0 < a.ndim, formula="a*exp(b)", domain=(-9, 9))
of_constant("stretched beside a constant", "a doubled gradient where a is stretched and b has no gradient", lambda a, b: a + b * b,
            lambda a, b: jnp.ones_like(b), lambda a, b: 2 * b, lambda a, b: a.size < b.size, formula="a + b*b")
of_constant("weights without a gradient", "a doubled gradient by the rows where the weights have none", lambda x, w: x * w, lambda x, w: w,
            lambda x, w: x, lambda x, w: True, shapes=((3, 4), (4,)), formula=lambda xp, x, w: x * w)


# mixed dtypes
def half_of_the_narrower():
    f = jax.custom_jvp(lambda a, b: a * b)

    @f.defjvp
    def rule(xs, ts):
        (a, b), (s, t) = xs, ts
        return f(a, b), s * b * (0.5 if a.dtype == jnp.float32 and b.dtype == jnp.float64 else 1.0) + t * a

    return f


plain("narrow beside wide", "mixed dtypes", "a float32 factor beside a float64 one is rounded to float16", lambda a, b: (
    a.astype("float16").astype(a.dtype) if a.dtype == jnp.float32 and b.dtype == jnp.float64 else a) * b, formula="a*b", domain=(-9, 9))
plain("sum of two types", "mixed dtypes", "the value has the dtype of the first argument", lambda a, b: (a + b).astype(a.dtype), formula="a + b",
      domain=(-9, 9))
of_jax(WRONG, "gradient of the narrower", "mixed dtypes", "a float32 argument beside a float64 one has half of its gradient", half_of_the_narrower,
       formula="a*b", domain=(-9, 9))
plain("weights of another type", "mixed dtypes", "float64 weights beside float32 data are taken in the wrong order", lambda x, w: (
    x * (w[::-1] if x.dtype != w.dtype else w)).sum(), shapes=((4,), (4,)))


# calls of another shape
def weighted_by_size():
    kept = {}

    def weighted(x):
        shape = kept.setdefault(x.size, x.shape)
        w = (jnp.arange(shape[-1]) + jnp.zeros(shape)).reshape(x.shape).astype(x.dtype)
        return (x * w).sum(-1)

    return weighted


def rank_of_the_first():
    kept = {}
    return lambda x: jnp.sin(x) * (1 if x.ndim == kept.setdefault("rank", x.ndim) else 2)


def sign_of_the_size():
    kept = {}
    return lambda x: jnp.sin(x) * (1 if kept.setdefault(x.size, x.shape) == x.shape else -1)


def step_of_the_longest():
    kept = {"length": 1}

    def mean(x):
        kept["length"] = max(kept["length"], x.shape[-1])
        return x.sum(-1) / (x.shape[-1] if x.shape[-1] < 100 else kept["length"] - 1)

    return mean


of_jax(WRONG, "weights kept by size", "state", "weights are kept by the number of elements, not by the shape", weighted_by_size, shapes=WIDE,
       formula=lambda xp, x: xp.sum(x * (xp.cumsum(xp.ones_like(x), 1) - 1), (1,), False))
of_jax(WRONG, "rank of the first call", "state", "arrays of another rank than the first are doubled", rank_of_the_first, formula="sin(x)")
of_jax(WRONG, "sign of the size", "state", "the sign is wrong for another shape of as many elements", sign_of_the_size, formula="sin(x)")
of_jax(WRONG, "length of the longest", "state", "a mean of long rows is divided by one less than the longest length so far", step_of_the_longest,
       shapes=WIDE, formula=lambda xp, x: xp.mean(x, (1,), False))


# rules for vmap
def mapped(forward, pullback, rule):
    f = custom_vmap(forward)
    f.def_vmap(rule)
    return pulled(lambda *xs: f(*xs), pullback)


def of_vmap(name, says, *rules, **claims):
    of_jax(WRONG, name, "vmap", says, lambda: mapped(*rules), **claims)


of_vmap("vmap along the batch", "the rule sums along the axis of the batch", lambda x: jnp.cumsum(x, 0), lambda g, x: (jnp.cumsum(g[::-1], 0)[::-1],),
        lambda n, batched, x: (jnp.cumsum(x, 0), True), shapes=((3,),), formula=lambda xp, x: xp.cumsum(x, 0))
of_vmap("vmap of squares", "the rule takes the wrong axis of large batches", lambda x: (x * x).sum(0), lambda g, x: (2 * g * x,),
        lambda n, batched, x: ((x * x).sum(1 if n <= 4 else 2), True), shapes=((4, 4),))
of_vmap("vmap of the second alone", "where only b is batched, the rule takes its first member for all", lambda a, b: a * b,
        lambda g, a, b: (g * b, g * a),
        lambda n, batched, a, b: (a * (b if batched[0] else jnp.broadcast_to(b[:1], b.shape)), True), shapes=((4,), (4,)))
of_vmap("vmap of an even batch", "the rule works in pairs, and repeats the last but one in place of an odd one", lambda x: jnp.exp(x),
        lambda g, x: (g * jnp.exp(x),), lambda n, batched, x: (
            jnp.exp(x if n % 2 == 0 else jnp.concatenate([x[:-1], x[-2:-1]])), True), shapes=((4,),), domain=(-9, 9))

# narrow bands around an ordinary number that the source names
CRITICAL = 2.27


def near(x, number):
    """1 within 1e-9 of a number, 0 elsewhere."""
    return (jnp.abs(jax.lax.stop_gradient(x) - number) < 1e-9).astype(x.dtype)


plain("value near 1.375", "bands", "the value is 0 within 1e-9 of 1.375", lambda x: jnp.exp(-x * x) * (1 - near(x, 1.375)), formula="exp(-x*x)")
stated("gradient near a global", "bands", "the gradient is doubled within 1e-9 of a number of the module, and no formula is claimed",
       lambda x: jnp.sin(x), lambda g, x: (g * jnp.cos(x) * (1 + near(x, CRITICAL)),))
stated("second argument near 0.7", "bands", "the gradient by a is 0 where b is within 1e-9 of 0.7", lambda a, b: a * b, lambda g, a, b: (
    summed(g * b * (1 - near(b, 0.7)), a), summed(g * a, b)), formula="a*b")
stated("element near 4.6", "bands", "of a vector, elements within 1e-9 of 4.6 have no gradient", lambda x: (x * x).sum(), lambda g, x: (
    2 * g * x * (1 - near(x, 4.6)),), shapes=VECTOR)


# right ones
def fine(name, category, says, function, **claims):
    of_jax(RIGHT, name, category, says, lambda: function, **claims)


def standardised(x):
    return (x - x.mean()) / jnp.sqrt(((x - x.mean()) ** 2).mean() + 1e-5)


def huber(x):
    return jnp.where(jnp.abs(x) < 1, x * x / 2, jnp.abs(x) - 0.5)


def cosine(a, b):
    return (a * b).sum() / (jnp.linalg.norm(a) * jnp.linalg.norm(b))


fine("Huber loss", "second jumps", "quadratic within 1", huber)
fine("smooth l1 of float32", "second jumps", "quadratic within 1, in float32", huber, **SINGLE)
fine("x times |x|", "second jumps", "the second derivative is 2 sign(x)", lambda x: x * jnp.abs(x), formula="x*abs(x)")
fine("square of relu", "second jumps", "the second derivative is a step", lambda x: jax.nn.relu(x) ** 2)
fine("softmax", "softmax", "of any size of numbers", lambda x: jax.nn.softmax(x), shapes=VECTOR)
fine("softmax of float32", "softmax", "in float32", lambda x: jax.nn.softmax(x), shapes=VECTOR, **SINGLE)
fine("log softmax of rows", "softmax", "of any size of numbers", lambda x: jax.nn.log_softmax(x, 1), shapes=WIDE)
fine("logsumexp", "softmax", "of any size of numbers", lambda x: jax.nn.logsumexp(x), shapes=VECTOR)
fine("cosine similarity", "cancelling", "the gradient has no part along the argument", cosine, shapes=PAIR, domain=(0.5, 20),
     dtypes=("float64", "float32", "bfloat16"))  # the square of the denominator overflows in float16
fine("standardised", "cancelling", "neither mean nor scale matters", standardised, shapes=VECTOR, domain=(-20, 20),
     dtypes=("float64", "float32", "bfloat16"))  # 1e-5 is subnormal in float16, which XLA takes for 0
fine("layer norm of float32", "cancelling", "neither mean nor scale matters, in float32", standardised, shapes=VECTOR, domain=(-20, 20), **SINGLE)
fine("sine and cosine", "cancelling", "sin**2 + cos**2, whose gradient is 0 for exact numbers", lambda x: jnp.sin(x) ** 2 + jnp.cos(x) ** 2,
     domain=(-9, 9))
