"""Sources of special functions for languages that have few of them, from the texts of `printed.txt`.

Where a language has no such function, its source is a series, a recurrence, steps of Newton, or calls a helper of several functions in `SHARED`.
"""

from __future__ import annotations

import os

from symgrad.system.texts import texts

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


PRINTED: dict[str, dict[str, str]] = {
    "gammainc_derivative": {**dict.fromkeys(("Torch", "Jax"), "9 _gammainc_derivative({0}, {1}, {2})"),  # of order 2 the integral cancels
                            "NumPy 1": "9 _gammainc_derivative({0}, {1}, 1)", "C 1": "9 symgrad_gammainc_derivative_1({0}, {1})"}}
SHARED: dict[str, str | dict[str, str]] = {}
TEMPLATES: dict[str, str] = {}  # of families, which replace words in braces
for _name, _languages, _text in texts(os.path.join(os.path.dirname(__file__), "printed.txt")):
    _text = f"\n{_text}\n"
    _sources = with_gammas(_text) if "GAMMAS" in _languages else dict.fromkeys(_languages or ("Python",), _text)
    if _name.startswith("_"):
        SHARED[_name] = _sources if _languages else _text
    elif _name.isupper():
        TEMPLATES[_name] = _text
    else:
        PRINTED.setdefault(_name, {}).update(_sources)
