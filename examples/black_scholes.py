"""The greeks of a European call to third order, from one price function (Black and Scholes 1973).

The price of a call with strike K on an asset at S, with volatility v, time T to expiry and rate r, is

    S Φ(d₁) - K exp(-rT) Φ(d₂),   d₁ = (log(S/K) + (r + v²/2) T) / (v √T),   d₂ = d₁ - v √T.

Known from elsewhere: at S = K = 100, v = 0.2, T = 1, r = 0.05 the price is 10.450584, and in closed form delta Φ(d₁), gamma φ(d₁)/(S v √T),
vega S φ(d₁) √T, vanna -φ(d₁) d₂/v, volga S √T φ(d₁) d₁ d₂/v, speed -gamma (d₁/(v √T) + 1)/S and ultima
-vega (d₁ d₂ (1 - d₁ d₂) + d₁² + d₂²)/v² (Haug, The Complete Guide to Option Pricing Formulas, 2007, chapter 2).
"""

import math

import symgrad
from symgrad import func

STRIKE = 100.0


def price(spot=100.0, volatility=0.2, time=1.0, rate=0.05):
    """The price of the call."""
    width = volatility * symgrad.sqrt(time)
    d1 = (symgrad.log(spot / STRIKE) + (rate + volatility * volatility / 2) * time) / width
    return spot * normal(d1) - STRIKE * symgrad.exp(-rate * time) * normal(d1 - width)


def normal(x):
    """Φ, the distribution function of the normal distribution; erfc keeps the digits of both tails."""
    return symgrad.erfc(-x * math.sqrt(0.5)) / 2


def closed_forms(s, v, t, r):
    """The greeks by the formulas of the literature."""
    d1 = (math.log(s / STRIKE) + (r + v * v / 2) * t) / (v * math.sqrt(t))
    d2 = d1 - v * math.sqrt(t)
    density = math.exp(-d1 * d1 / 2) / math.sqrt(2 * math.pi)
    gamma, vega = density / (s * v * math.sqrt(t)), s * density * math.sqrt(t)
    return {"delta": math.erfc(-d1 / math.sqrt(2)) / 2, "gamma": gamma, "vega": vega, "vanna": -density * d2 / v, "volga": vega * d1 * d2 / v,
            "speed": -gamma * (d1 / (v * math.sqrt(t)) + 1) / s, "ultima": -vega * (d1 * d2 * (1 - d1 * d2) + d1 * d1 + d2 * d2) / v**2}


BY = {"delta": (0,), "gamma": (0, 0), "vega": (1,), "vanna": (0, 1), "volga": (1, 1), "speed": (0, 0, 0), "ultima": (1, 1, 1)}


def greek(name, at):
    """A derivative of the price, of any order."""
    derivative = price
    for argument in BY[name]:
        derivative = func.grad(derivative, argument)
    return derivative(*map(symgrad.tensor, at)).item()


def main():
    """Print the greeks, and assert that they are those of the literature, at the money and far from it."""
    at = (100.0, 0.2, 1.0, 0.05)
    value = price(*map(symgrad.tensor, at)).item()
    print(f"price  {value:12.6f}")
    assert round(value, 6) == 10.450584
    for name, known in closed_forms(*at).items():
        print(f"{name:7}{known:12.6f}")
    for place in (at, (60.0, 0.15, 0.5, 0.01), (250.0, 0.4, 2.0, 0.0)):
        for name, known in closed_forms(*place).items():
            found = greek(name, place)
            assert abs(found - known) <= 1e-11 * max(abs(known), 1e-4), (name, place, found, known)


if __name__ == "__main__":
    main()
