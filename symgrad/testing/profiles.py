"""How thoroughly an op is attacked: examples, orders, and whether its formulas are proved."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PROFILES", "Profile", "profile_named"]


class Profile(NamedTuple):
    """A number of random examples per check (beside the special ones, which are always there), the highest order, and seconds for proofs."""

    name: str
    examples: int
    order: int
    seconds: float


PROFILES = {"dev": Profile("dev", 20, 3, 0.0), "ci": Profile("ci", 60, 3, 10.0), "thorough": Profile("thorough", 1000, 3, 120.0)}


def profile_named(name: str | Profile) -> Profile:
    """A profile by its name. Raises ValueError for a name that there is not.

    >>> profile_named("ci").examples
    60
    """
    if isinstance(name, Profile):
        return name
    if name not in PROFILES:
        raise ValueError(f"symgrad.testing: profile is {name!r}; expected one of {', '.join(PROFILES)}")
    return PROFILES[name]
