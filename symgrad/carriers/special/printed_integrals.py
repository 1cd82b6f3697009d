"""Helpers that the sources of several special functions call: integrals without cancellation, whose steps stand along a new last axis.

`{m}` is the module of arrays. A helper that calls functions of the gamma family has a text for each language.
"""

from __future__ import annotations

from symgrad.carriers.special.pieces import BERNOULLI

SHARED: dict[str, str | dict[str, str]] = {
    "_between": """
def _between(x, count=230):
    t = ({m}.zeros_like(x[..., None]) + {m}.arange(-count, count + 1)) * (3.6 / count)
    s = 3.141592653589793 * {m}.sinh(t)
    low, high = 1 / (1 + {m}.exp(-s)), 1 / (1 + {m}.exp(s))
    return low, high, 3.6 / count * 3.141592653589793 * {m}.cosh(t) * low * high
""",  # the tanh-sinh rule on (0, 1): the points, their distances from 1, and the weights
    "_whole": """
def _whole(x, first, count):
    return {m}.zeros_like(x[..., None]) + {m}.arange(first, first + count)
""",
    "_elliptic": """
def _elliptic(phi, p, power, n):
    turns = {m}.round(phi / 3.141592653589793)
    rest = (phi - turns * 3.141592653589793) - turns * 1.2246467991473532e-16
    part = _within(rest, (1.5707963267948966 - {m}.abs(rest)) + 6.123233995736766e-17, p, power, n)
    full = _within(1.5707963267948966 + 0 * rest, 0 * rest, p, power, n)
    return part + {m}.where(turns == 0, 0.0, 2 * turns * full)
""",  # by the first quarter of the period, which ends at π/2 itself and not at the number below it
    "_within": """
def _within(phi, gap, p, power, n):
    low, high, weight = _between(phi + 0 * p)
    phi, gap, p = (phi + 0 * p)[..., None], (gap + 0 * p)[..., None], (p + 0 * phi)[..., None]
    s, c = {m}.sin(phi * low), {m}.sin({m}.abs(phi) * high + gap)
    factor = 1.0
    for k in range(n):
        factor = factor * (k - power)
    return factor * (weight * phi * s**(2 * n) * (c * c + p * s * s)**(power - n)).sum(-1)
""",
    "_complete": """
def _complete(p, power, n, count):
    size = {m}.where(p > 0, p, 1.0)
    step = (40 + {m}.abs(0.5 * {m}.log(size))) / count
    t = {m}.exp({m}.clip(step[..., None] * _whole(p, -count, 2 * count + 1), None, 300.0))
    square, root = size[..., None], {m}.sqrt(size)[..., None]
    r, w = {m}.sqrt(1 + t * t), {m}.sqrt(square + t * t)
    terms = (t / r)**(2 * n) * (root * r / w)**(2 * power) * (t / w) * (root / w)
    found = math.prod(k - power for k in range(n)) * step * terms.sum(-1) / size**n
    end = 1.0 if n == 0 and power > 0 else math.prod(k - power for k in range(n)) * {m}.inf
    return {m}.where(p > 0, found, {m}.where(p == 0, end, {m}.nan))
""",  # by the logarithm of the tangent times the root of p, whose peak is at 1 for every size of p
    "_k_integral": """
def _k_integral(x, order, power):
    size = {m}.where((x > 0) & (x < {m}.inf), x, 1.0)
    near = {m}.clip(size, 1e-18, None)
    last = 2 * {m}.arcsinh({m}.sqrt((40 + 4 * power) / near))
    last = 2 * {m}.arcsinh({m}.sqrt((40 + 4 * power + abs(order) * last * 1.5) / near))
    low, high, weight = _between(near)
    t = last[..., None] * low
    u = 2 * {m}.sinh(t / 2)**2
    grown = 0.5 * ({m}.exp(abs(order) * t - near[..., None] * u) + {m}.exp(-abs(order) * t - near[..., None] * u))
    found = last * (weight * u**power * grown).sum(-1)
    leading = 0.11593151565841245 - {m}.log(size)
    if order or power:
        leading = (0.5 * 2.0**abs(order) if order else 1.0) * math.gamma(abs(order) + power) / size**(abs(order) + power)
    found = {m}.where(size < 1e-18, leading, {m}.where(x < {m}.inf, found, 0.0))
    return {m}.where(x > 0, found, {m}.where(x == 0, {m}.inf, {m}.nan))
""",  # the integral of (cosh t - 1)ᵏ cosh(nt) e^(-x (cosh t - 1)) from 0 on, and its leading term next to 0. DLMF 10.32.9
    "_of_airy": """
def _of_airy(x, slope):
    near = {m}.clip(x, -9.0, 200.0)
    c = {m}.sqrt({m}.clip(near, 0.25, None))
    step = {m}.sqrt(40 / c) / 256
    t = step[..., None] * _whole(x, 0, 257)
    size = {m}.exp(-c[..., None] * t * t)
    turn = t**3 / 3 + (near - c * c)[..., None] * t
    wave = -c[..., None] * {m}.cos(turn) - t * {m}.sin(turn) if slope else {m}.cos(turn)
    total = (size * wave).sum(-1) - 0.5 * (-c if slope else 1)
    inside = step * total / 3.141592653589793 * {m}.exp(c * (c * c / 3 - near))
    far = {m}.clip(-x, 9.0, None)
    zeta = far * {m}.sqrt(far) / 1.5
    sums, term = [0, 0], 1.0 + 0 * far
    for k in range(30):
        factor = (6 * k + 1) / (1 - 6 * k) if slope else 1.0
        sums[k % 2] = sums[k % 2] + factor * term * (-1) ** (k // 2)
        term = term * ((6 * k + 1) * (6 * k + 3) * (6 * k + 5) / (216 * (k + 1) * (2 * k + 1))) / zeta
    turn, root = zeta - 0.7853981633974483, {m}.sqrt({m}.sqrt(far))
    wave = ({m}.sin(turn) * sums[0] - {m}.cos(turn) * sums[1]) * root if slope else ({m}.cos(turn) * sums[0] + {m}.sin(turn) * sums[1]) / root
    return {m}.where(x < -9, 0.5641895835477563 * wave, {m}.where(x > 200, 0.0, inside))
""",  # e^(i (w³/3 + x w)) along the line through its saddle point, and the asymptotic series. DLMF 9.5.4, 9.7.9, 9.7.10
    "_of_bessel": """
def _of_bessel(x, order, second):
    size = {m}.abs(x) if order % 1 == 0 else x
    split = 25 + order * order / 2
    far = {m}.where((size > split) & (size < {m}.inf), size, 2 * split)
    sums, term = [0, 0, 0, 0], 1 / {m}.sqrt(1.5707963267948966 * far)
    for k in range(20):
        sums[k % 4] = sums[k % 4] + term
        term = term * (4 * order**2 - (2 * k + 1)**2) / (8 * (k + 1)) / far
    turn = (order / 2 + 0.25) * math.pi
    cosine = {m}.cos(far) * math.cos(turn) + {m}.sin(far) * math.sin(turn)
    sine = {m}.sin(far) * math.cos(turn) - {m}.cos(far) * math.sin(turn)
    p, q = sums[0] - sums[2], sums[1] - sums[3]
    wave = p * sine + q * cosine if second else p * cosine - q * sine
    near = {m}.where((size > 0) & (size <= split), size, 1.0)
    low, high, weight = _between(near)
    angle = near[..., None] * {m}.sin(3.141592653589793 * {m}.where(low < 0.5, low, high)) - 3.141592653589793 * order * low
    inside = (weight * ({m}.sin(angle) if second else {m}.cos(angle))).sum(-1)
    if second or order % 1:
        last = {m}.arcsinh((40 + 2 * abs(order)) / near)
        last = {m}.arcsinh((40 + 2 * abs(order) + abs(order) * last) / near)
        t = last[..., None] * low
        fall = -near[..., None] * {m}.sinh(t)
        rest = {m}.exp(fall - order * t) * (math.cos(order * math.pi) if second else math.sin(order * math.pi))
        rest = rest + {m}.exp(fall + order * t) if second else rest
        inside = inside - last * (weight * rest).sum(-1) / 3.141592653589793
    if not second:
        few = (near * near / 4 < abs(order + 1)) & (near < (4 if order < 0 else 2 * order + 4))
        small = {m}.where(few, near, 1.0)
        k = _whole(x, 1, 40)
        series = 1 + {m}.cumprod(-(small * small / 4)[..., None] / (k * (k + order)), -1).sum(-1) if order >= 0 or order % 1 else 0.0
        inside = {m}.where(few, (small / 2)**order / math.gamma(order + 1) * series, inside) if order >= 0 or order % 1 else inside
        sign = {m}.where(x < 0, (-1.0) ** (order % 2), 1.0) if order % 1 == 0 else 1.0
        at_zero = 1.0 if order == 0 else 0.0 if order > 0 or order % 1 == 0 else {m}.inf
        inside = {m}.where(size == 0, at_zero, {m}.where(size > 0, inside, {m}.nan))
        found = sign * {m}.where(size > split, wave, inside)
    else:
        found = {m}.where(x > split, wave, {m}.where(x > 0, inside, {m}.where(x == 0, -{m}.inf, {m}.nan)))
    return {m}.where(size == {m}.inf, 0.0, found)
""",  # Hankel's expansion, the integrals of Schläfli, and the power series of J. DLMF 10.2.2, 10.9.6, 10.9.7, 10.17.3, 10.17.4
    "_first_kind": """
def _first_kind(x, order):
    size = {m}.abs(x)
    near = {m}.clip(size, None, 30 + order * order)
    k = _whole(x, 1, 120 + 2 * int(order * order))
    series = 1 + {m}.cumprod((near * near / 4)[..., None] / (k * (k + order)), -1).sum(-1)
    inside = {m}.exp(-near) * (near / 2)**order / math.gamma(order + 1) * series
    far = {m}.clip(size, 30 + order * order, None)
    total, term = 0.0, 1 / {m}.sqrt(6.283185307179586 * far)
    for k in range(30):
        total = total + term
        term = -term * (4 * order**2 - (2 * k + 1)**2) / (8 * (k + 1)) / far
    found = {m}.where(size < 30 + order * order, inside, total)
    return found * {m}.where(x < 0, (-1.0) ** order, 1.0) if order % 1 == 0 else {m}.where(x < 0, {m}.nan, found)
""",  # e^-|x| I, by the power series and for large numbers. DLMF 10.25.2, 10.40.1
    "_auxiliary": """
def _auxiliary(x):
    low, high, weight = _between(x)
    t = low * (45 / x)[..., None]
    fall = weight * (45 / x)[..., None] * {m}.exp(-x[..., None] * t) / (1 + t * t)
    return fall.sum(-1), (fall * t).sum(-1)
""",  # of the sine and cosine integrals. DLMF 6.7.13, 6.7.14
    "_auxiliary_of_fresnel": """
def _auxiliary_of_fresnel(x):
    rate = 1.5707963267948966 * x * x
    step = {m}.sqrt(40 / rate) / 96
    v = step[..., None] * _whole(x, 0, 97)
    fall = {m}.exp(-rate[..., None] * v * v) / (v**4 + 1) * (step * 0.4501581580785530)[..., None]
    return fall.sum(-1) - 0.2250790790392765 * step, (fall * v * v).sum(-1)
""",  # DLMF 7.7.10, 7.7.11
    "_near_fresnel": """
def _near_fresnel(x, first):
    square = (1.5707963267948966 * x * x)**2
    total, term = 0.0, x * (1.5707963267948966 * x * x)**first
    for k in range(24):
        total = total + term / (4 * k + 2 * first + 1)
        term = -term * square / ((2 * k + first + 1) * (2 * k + first + 2))
    return total
""",
}
SHARED["_tail_of_erf"] = """
def _tail_of_erf(rest):
    log = {m}.log(rest)
    y = {m}.sqrt(-log)
    for k in range(6):
        scaled = _erfcx_derivative(y, 0)
        y = y + 0.886226925452758 * scaled * ({m}.log(scaled) - y * y - log)
    return y
"""  # y with erfc(y) = rest, which is not above 1/2, by Newton's steps for log erfc
SHARED["_stirling"] = """
def _stirling(x):
    return sum(c * x ** (1 - 2 * k) for k, c in enumerate(SERIES, 1))
""".replace("SERIES", str(tuple(float(b) / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI[:10], 1))))  # DLMF 5.11.1
SHARED["_density"] = """
def _density(a, u, t, scale):
    wide = {m}.clip(a, 8.0, None)
    part, distance = t / wide, (t - wide) / wide
    near = {m}.exp(wide * ({m}.log1p({m}.clip(distance, -0.6, None)) - distance))
    large = {m}.where(t < wide / 2, (part * {m}.exp(1 - part))**wide, near) * {m}.sqrt(wide / 6.283185307179586)
    return {m}.where(a < 8, {m}.exp(a * u - scale) * {m}.exp(-t), large * {m}.exp(-_stirling(wide)))
"""  # that of the gamma distribution times t, with u = log t. DLMF 5.11.1
ABOVE_DIGAMMA = """
def _above_digamma(a, u, t):
    wide = {m}.clip(a, 8.0, None)
    distance = (t - wide) / wide
    logs = {m}.where({m}.abs(distance) < 0.5, {m}.log1p({m}.clip(distance, -0.6, 0.6)), {m}.log(t / wide))
    series = (0.5 + sum(c * wide ** (1 - 2 * k) for k, c in enumerate(SERIES, 1))) / wide
    return {m}.where(a < 8, u - DIGAMMA(a), logs + series)
""".replace("SERIES", str(tuple(float(b) / (2 * k) for k, b in enumerate(BERNOULLI[:10], 1))))
# log t - ψ(a) with u = log t: of large a by the series of log a - ψ(a), next to which u - ψ(a) would cancel. DLMF 5.11.2
PARTS_OF_GAMMA = """
def _parts_of_gamma(a, x, n):
    below = x < {m}.clip({m}.exp(DIGAMMA(a)), 1e-15, None)
    size, inside = {m}.where(below & (x > 0), x, 1.0)[..., None], {m}.where(below, 1.0, x)[..., None]
    wide, power = a[..., None], {m}.clip(2 / a, 1.0, None)[..., None]
    low, high, weight = _between(x)
    means = [-POLYGAMMAOFWIDE for j in range(1, n)]
    reach = 45 + 10 * {m}.sqrt(wide)
    t, found = (size * low**power, inside + reach * low), []
    logs = {m}.log(size) + power * {m}.log(low), {m}.log(t[1])
    for log, t, factor in zip(logs, t, (weight * power / low, weight * reach / t[1])):
        terms, out = [_above_digamma(wide, log, t), *means], [1.0]
        for k in range(n):
            out.append(sum(math.comb(k, j) * out[j] * terms[k - j] for j in range(k + 1)))
        found.append((factor * out[n] * _density(wide, log, t, LGAMMA(wide))).sum(-1))
    lower, upper = {m}.where(x > 0, found[0], {m}.where(x == 0, 0.0, {m}.nan)), {m}.where(x == {m}.inf, 0.0, found[1])
    return below, {m}.where(a > 0, lower, {m}.nan), {m}.where(a > 0, upper, {m}.nan)
"""  # from 0 to x and from x on, of which the one is used that the derivative of the density has one sign in; next to 0 the one has no points
GAMMAS = {"NumPy": ("scipy.special.gamma", "scipy.special.gammaln", "scipy.special.psi", "scipy.special.polygamma(j, ?)"),
          "Torch": ("_gamma", "torch.special.gammaln", "torch.special.digamma", "(-1)**(j + 1) * math.factorial(j) * torch.special.zeta(j + 1.0, ?)"),
          "Jax": ("_gamma", "jax.scipy.special.gammaln", "jax.scipy.special.digamma", "jax.scipy.special.polygamma(j, ?)"),
          "C": ("{m}.gamma", "{m}.lgamma", "{m}.digamma", "{m}.digamma_derivative(?, j)")}


def with_gammas(text: str) -> dict[str, str]:
    """A helper for every language, with its functions of the gamma family."""
    out = {}
    for language, (gamma, log, psi, poly) in GAMMAS.items():
        of = text.replace("POLYGAMMAOFWIDE", poly.replace("?", "wide")).replace("POLYGAMMA", poly.replace("?", "a"))
        out[language] = of.replace("DIGAMMA", psi).replace("LGAMMA", log).replace("GAMMA", gamma)
    return out


SHARED["_parts_of_gamma"] = with_gammas(PARTS_OF_GAMMA)
SHARED["_above_digamma"] = with_gammas(ABOVE_DIGAMMA)
SHARED["_gammainc_derivative"] = """
def _gammainc_derivative(a, x, n):
    below, lower, upper = _parts_of_gamma(a, x, n)
    return {m}.where(below, lower, -upper)
"""
