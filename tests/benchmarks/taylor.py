"""Taylor mode: the Laplacian of a network at a batch of points, and all derivatives up to the sixth at once."""


import symgrad
from tests.benchmarks import fields, higher
from tests.benchmarks.table import compare, torch_one_thread

ORDER, BARS = 6, {(): 0.03, (1000,): 0.08}


def our_laplacian():
    """The Laplacian of the network at every point, by one forward pass."""
    from symgrad.func import calculus

    w = [symgrad.tensor(a) for a in fields.weights()]
    points = symgrad.tensor(fields.points())
    transform = calculus.laplacian(lambda z: fields.network(symgrad, z, w)[:, 0], dim=-1)
    return lambda: transform(points)


def our_jet(shape):
    """The derivatives of the first orders at a point, of which the last is compared."""
    from symgrad.func import taylor

    x = higher.point(symgrad, shape).detach()
    one, zero = symgrad.ones_like(x), symgrad.zeros_like(x)
    series = [one] + [zero] * (ORDER - 1)
    return lambda: taylor.jet(lambda z: higher.function(symgrad, z), (x,), (series,))[1][-1]


def rows(timing):
    """The Laplacian beside torch's fastest route, and the jet beside torch's nested gradients."""
    torch = torch_one_thread()
    yield compare("Laplacian, 10-20-20-1, 100 points", "torch, its fastest route", our_laplacian(), torch and fields.laplacian_routes(torch), 0.15,
                  timing)
    for shape, bar in BARS.items():
        x = torch and higher.point(torch, shape)
        nested = torch and (lambda x=x: higher.nested(torch, x, ORDER))
        yield compare(f"jet, order {ORDER}, shape {shape}", "torch autograd.grad, nested", our_jet(shape), nested, bar, timing)
