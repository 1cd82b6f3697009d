"""Sources of special functions for PyTorch and JAX, which have few of them, and of some that SciPy does not have: helpers in Python.

Where the language has no such function, its source is a series, a recurrence, steps of Newton, or calls an integral of `printed_integrals`. `{m}` is
the module of arrays.
"""

from __future__ import annotations

from symgrad.carriers.special.pieces import BERNOULLI
from symgrad.carriers.special.polynomials import FAMILIES
from symgrad.carriers.special.printed_integrals import with_gammas

ELLIPTIC = """
def _{name}({arguments}):
    return {integral}
"""
INCOMPLETE = """
def _?_derivative(phi, m, k, n):
    if k == 0:
        return _elliptic(phi, 1 - m, POWER, n)
    s, c = {m}.sin(phi), {m}.cos(phi)
    square, factor = c * c + (1 - m) * s * s, math.prod(i - POWER for i in range(n))
    wave = square**(POWER - n)
    if k == 1:
        return factor * s**(2 * n) * wave
    return 2 * factor * s * c * wave * ((n * s**(2 * n - 2) if n else 0) - (POWER - n) * m * s**(2 * n) / square)
"""  # up to the second derivative by phi
MEAN = """
def _?:
    a, b = 1.0, {m}.sqrt(START)
    for _ in range(14):
        a, b = (a + b) / 2, {m}.sqrt(a * b)
    return {m}.where(START == 0, {m}.inf, 1.5707963267948966 / a)
"""  # the arithmetic-geometric mean. DLMF 19.8.5
DENSITY = """
def _gamma_density(shape, x, n):
    small = shape < 1
    a = {m}.where(small, shape + 1, shape)
    terms = [_above_digamma(a, {m}.log(x), x), *[-POLYGAMMA for j in range(1, n)]]
    few = {m}.clip(a, None, 100.0)
    power = x**({m}.clip(shape, None, 100.0) - 1)
    out = [{m}.where(a < 100, power * {m}.exp(-x) / GAMMA(few), {m}.exp((a - 1) * {m}.log(x) - x - LGAMMA(a)))]
    for k in range(n):
        out.append(sum(math.comb(k, j) * out[j] * terms[k - j] for j in range(k + 1)))
    found = {m}.where(small, shape * out[n] + n * out[n - 1], out[n])
    return {m}.where((shape > 0) & (x >= 0), {m}.where(x == {m}.inf, 0.0, found), {m}.nan)
"""  # with Γ(a) = Γ(a + 1) / a for small a
ZETA = """
def _zeta_derivative(s, q, n, m):
    def times(f, g):
        return [sum(f[i] * g[k - i] for i in range(k + 1)) for k in range(n + 1)]

    def linear(a):
        return [a, 1.0, *[0.0] * n][:n + 1]

    def power(a):
        log, base = -{m}.log(a), a**-s * (1 / a)**m
        return [base * log**k / math.factorial(k) for k in range(n + 1)]

    sums = [sum(terms) for terms in zip(*[power(q + k) for k in range(20)])]
    far = q + 20
    last = power(far)
    pole = times(last, [far * (-1) ** k / (s + m - 1)**(k + 1) for k in range(n + 1)])
    sums = [a + b + c / 2 for a, b, c in zip(sums, pole, last)]
    term = [c / far for c in times(last, linear(s + m))]
    for r, number in enumerate(BERNOULLI, 1):
        sums = [a + number / math.factorial(2 * r) * b for a, b in zip(sums, term)]
        term = [c / far**2 for c in times(times(term, linear(s + m + 2 * r - 1)), linear(s + m + 2 * r))]
    for i in range(m):
        sums = times(sums, linear(s + i))
    return (-1)**m * math.factorial(n) * sums[n]
""".replace("BERNOULLI", str(tuple(float(b) for b in BERNOULLI[:10])))
BESSEL_IN_C = """
def _bessel_?(x, order):
    if order % 1:
        return _of_bessel(x, order, SECOND)
    return (-1)**min(order, 0) * {m}.?n(abs(order), x)
"""
CURVE = "\ndef _{name}(x):\n    return _of_airy(x, {slope})\n"


def _complete(name: str, p: str, power: float, order: str, sign: str = "", count: int = 600) -> dict[str, str]:
    integral = f"{sign}_complete({p}, {power}, {order}, {count})"
    return {"Python": ELLIPTIC.format(name=name, arguments=p[-1] + ", n" * (order == "n"), integral=integral)}


def _incomplete(name: str, power: float) -> dict[str, str]:
    return {"Python": ELLIPTIC.format(name=name, arguments="phi, m", integral=f"_elliptic(phi, 1 - m, {power}, 0)")}


OPEN = """
def _{name}(x, order):
    u = {{m}}.clip(x, -745, 745)
    z = {{m}}.exp(-{{m}}.abs(u))
    first, second, rest = [{{m}}.where(u < 0, a, b) for a, b in zip({left}, {right})]
    total = first + second + rest
    rates = [(first + 2**j * second) / total for j in range(order + 1)]
    closed = [rest / total]
    for k in range(1, order + 1):
        closed.append(-sum(math.comb(k, j) * rates[j] * closed[k - j] for j in range(1, k + 1)))
    return -order * closed[order - 1] - u * closed[order]
"""  # with 1 minus the gate, rest / (eˣ + ... + rest), of which all three are divided by the largest
RECURRENCES = ("0, 2, 1, 1",) * 4 + ("0, 2, 2 * n, 1", "0, 1, n, 1", "0, 2 * n + 1, n, n + 1", "2 * n + 1, -1, n, n + 1")  # of `FAMILIES`
PRINTED: dict[str, dict[str, str]] = {
    "ellipk": {"Python": MEAN.replace("?", "ellipk(m)").replace("START", "1 - m")},
    "ellipe": _complete("ellipe", "1 - m", 0.5, "0"),
    "ellipkm1": {"Python": MEAN.replace("?", "ellipkm1(p)").replace("START", "p")},
    "ellipk_derivative": _complete("ellipk_derivative", "1 - m", -0.5, "n"),
    "ellipe_derivative": _complete("ellipe_derivative", "1 - m", 0.5, "n"),
    "ellipkm1_derivative": _complete("ellipkm1_derivative", "p", -0.5, "n", "(-1.0)**n * ", 1400),
    "ellipkinc": _incomplete("ellipkinc", -0.5),
    "ellipeinc": _incomplete("ellipeinc", 0.5),
    "ellipkinc_derivative": {"Python": INCOMPLETE.replace("?", "ellipkinc").replace("POWER", "-0.5")},
    "ellipeinc_derivative": {"Python": INCOMPLETE.replace("?", "ellipeinc").replace("POWER", "0.5")},
    "airy_ai": {"Python": CURVE.format(name="airy_ai", slope=False)},
    "airy_ai_prime": {"Python": CURVE.format(name="airy_ai_prime", slope=True)},
    **{f"bessel_{letter}": {"Python": f"\ndef _bessel_{letter}(x, order):\n    return _of_bessel(x, order, {letter == 'y'})\n",
                            "C": BESSEL_IN_C.replace("?", letter).replace("SECOND", str(letter == "y"))}
       for letter in "jy"},
    "bessel_k": {"Python": "\ndef _bessel_k(x, order):\n    return {m}.exp(-x) * _k_integral(x, order, 0)\n"},
    "bessel_i": {"Python": """
def _bessel_i(x, order):
    x = {m}.clip(x, -2000.0, 2000.0)
    half = {m}.exp({m}.abs(x) / 2)
    return _first_kind(x, order if order % 1 else abs(order)) * half * half
"""},
    "bessel_k_moment": {"Python": "\ndef _bessel_k_moment(x, order):\n    return _k_integral(x, 0, order)\n"},
    "scaled_modified_bessel_k1": {"Python": "\ndef _scaled_modified_bessel_k1(x):\n    return _k_integral(x, 1, 0)\n"},
    **{f"bessel_{letter}_derivative": {"Python": f"""
def _bessel_{letter}_derivative(x, order, times):
    return sum((-1)**k * math.comb(times, k) * _bessel_{letter}(x, order - times + 2 * k) for k in range(times + 1)) / 2**times
"""} for letter in "jy"},
    "sine_integral": {"Python": """
def _sine_integral(x):
    near, far = {m}.clip(x, -4.0, 4.0), {m}.clip({m}.abs(x), 4.0, 1e300)
    total, term = 0.0, near
    for k in range(1, 40, 2):
        total = total + term / k
        term = -term * near * near / ((k + 1) * (k + 2))
    f, g = _auxiliary(far)
    rest = 1.5707963267948966 - f * {m}.cos(far) - g * {m}.sin(far)
    return {m}.where({m}.abs(x) < 4, total, {m}.sign(x) * rest)
"""},
    "cosine_integral": {"Python": """
def _cosine_integral(x):
    near, far = {m}.clip(x, None, 4.0), {m}.clip(x, 4.0, 1e300)
    total, term = 0.5772156649015329 + {m}.log(near), 1.0
    for k in range(2, 42, 2):
        term = -term * near * near / ((k - 1) * k)
        total = total + term / k
    f, g = _auxiliary(far)
    return {m}.where(x < 4, total, f * {m}.sin(far) - g * {m}.cos(far))
"""},
    "fresnel_s": {"Python": """
def _fresnel_s(x):
    far = {m}.clip({m}.abs(x), 1.5, 1e150)
    f, g = _auxiliary_of_fresnel(far)
    rest = 0.5 - f * _fresnel_cosine(far, 0) - g * _fresnel_sine(far, 0)
    return {m}.where({m}.abs(x) < 1.5, _near_fresnel({m}.clip(x, -1.5, 1.5), 1), {m}.sign(x) * rest)
"""},
    "fresnel_c": {"Python": """
def _fresnel_c(x):
    far = {m}.clip({m}.abs(x), 1.5, 1e150)
    f, g = _auxiliary_of_fresnel(far)
    rest = 0.5 + f * _fresnel_sine(far, 0) - g * _fresnel_cosine(far, 0)
    return {m}.where({m}.abs(x) < 1.5, _near_fresnel({m}.clip(x, -1.5, 1.5), 0), {m}.sign(x) * rest)
"""},
    "exp1": {"Python": """
def _exp1(x):
    near, far = {m}.clip(x, None, 2.0), {m}.clip(x, 2.0, None)
    total, term = -0.5772156649015329 - {m}.log(near), 1.0
    for k in range(1, 30):
        term = -term * near / k
        total = total - term / k
    below = far + 161
    for k in range(80, 0, -1):
        below = far + (2 * k - 1) - k * k / below
    return {m}.where(x < 2, total, {m}.exp(-far) / below)
"""},  # the power series, and the continued fraction. DLMF 6.6.2, 6.9.1
    "expi": {"Python": """
def _expi(x):
    near, far = {m}.where(x > 0, {m}.clip(x, None, 40.0), 1.0), {m}.clip(x, 40.0, 1e3)
    distance = (near - 0.3725074107813666) - 1.3140183414386028e-17
    small = near < 0.1
    total = {m}.where(small, {m}.log(near) + 0.5772156649015329, {m}.log1p({m}.clip(distance, -0.3, None) / 0.3725074107813666))
    base, power, factor = {m}.where(small, 0 * near, 0.3725074107813666), 0.0, 1.0
    step = {m}.where(small, near, distance)
    for k in range(1, 120):
        power, factor = near * power + base**(k - 1) * step, factor / k
        total = total + power * (factor / k)
    series = 1.0
    for k in range(40, 0, -1):
        series = 1 + series * k / far
    below = -_exp1({m}.where(x < 0, -x, 1.0))
    return {m}.where(x < 0, below, {m}.where(x < 40, total, {m}.exp(far) / far * series))
"""},
    "lambertw": {"Python": """
def _lambertw(x):
    first = {m}.log1p({m}.clip(x, -0.36787944117144233, None))
    w = first * (1 - {m}.log1p({m}.clip(first, -0.5, None)) / (2 + first))
    for k in range(8):
        w = w - (w - x * {m}.exp(-w)) / (1 + w)
    return {m}.where(x < -0.36787944117144233, {m}.nan, w)
"""},
    **{name: {"Python": OPEN.format(name=name, left=f"({', '.join(left)})", right=f"({', '.join(right)})")}
       for name, left, right in (
           ("silu_derivative", ("z", "0.0 * z", "1.0 + 0.0 * z"), ("1.0 + 0.0 * z", "0.0 * z", "z")),
           ("mish_derivative", ("2.0 * z", "z * z", "2.0 + 0.0 * z"), ("2.0 * z", "1.0 + 0.0 * z", "2.0 * z * z")))},
    "gamma_density": with_gammas(DENSITY),
    "gammainc_derivative": {**dict.fromkeys(("Torch", "Jax"), "9 _gammainc_derivative({0}, {1}, {2})"),  # of order 2 the integral cancels
                            "NumPy 1": "9 _gammainc_derivative({0}, {1}, 1)", "C 1": "9 symgrad_gammainc_derivative_1({0}, {1})"},
    "gammainc": dict.fromkeys(("Torch", "C"), """
def _gammainc(a, x):
    below, lower, upper = _parts_of_gamma(a, x, 0)
    return {m}.where(below, lower, 1 - upper)
"""), "gammaincc": dict.fromkeys(("Torch", "C"), """
def _gammaincc(a, x):
    below, lower, upper = _parts_of_gamma(a, x, 0)
    return {m}.where(below, 1 - lower, upper)
"""),
    "zeta_derivative": {"Python": ZETA},
    "gelu_derivative": {"Python": """
def _gelu_derivative(x, order):
    u = {m}.clip(x, -40, 40)
    below, here = 0 * u, 1 + 0 * u
    for k in range(order - 1):
        below, here = here, -u * here - k * below
    near = {m}.round(u * 64) / 64
    half = 0.6316187777460647 * {m}.exp(-0.25 * near * near)
    return (u * here + order * below) * half * {m}.exp(0.5 * (near - u) * (near + u)) * half
"""},
    "gelu_tanh_derivative": {"Python": """
def _gelu_tanh_derivative(x, order):
    u = {m}.clip(x, -30, 30)
    s = 1.5957691216057308 * (u + 0.044715 * u**3)
    odds = {m}.exp(-{m}.abs(s))
    rates = [1.5957691216057308 * (1 + 0.134145 * u * u), 0.42812889763560147 * u, 0.21406444881780073]
    gates, odd = [{m}.where(s < 0, odds, 1.0) / (1 + odds)], [{m}.tanh(s / 2)]
    slopes = [odds / ((1 + odds) * (1 + odds))]
    for k in range(1, order + 1):
        gates.append(sum(slopes[i] * rates[k - 1 - i] for i in range(max(0, k - 3), k)) / k)
        odd.append(2 * gates[k])
        slopes.append(-sum(odd[k - j] * gates[j] * j for j in range(1, k + 1)) / k)
    return math.factorial(order) * (u * gates[order] + gates[order - 1])
"""},
    "orthogonal_polynomial": {"Python": """
def _orthogonal_polynomial(x, family, degree, order):
    (a, b), recurrence = (
        RECURRENCES,
    )[family]
    below, here = [1 + 0 * x] + [0 * x] * order, [a + b * x] + [b + 0 * x] * (order > 0) + [0 * x] * (order - 1)
    for n in range(1, degree):
        c, d, e, f = recurrence(n)
        above = [((c + d * x) * here[k] + k * d * (here[k - 1] if k else 0) - e * below[k]) / f for k in range(order + 1)]
        below, here = here, above
    return here[order] if degree > 0 else below[order] if degree == 0 else 0 * x
""".replace("RECURRENCES", ",\n        ".join(f"({first}, lambda n: ({text}))" for (first, _), text in zip(FAMILIES.values(), RECURRENCES)))},
}
