"""Profiles, which set the number of examples, the highest order, and the time for proofs."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["PROFILES", "Profile", "profile_named"]


class Profile(NamedTuple):
    """The number of random examples per check (the fixed ones are added), the highest order of derivatives, and the seconds for proofs."""

    name: str
    examples: int
    order: int
    seconds: float


PROFILES = {"dev": Profile("dev", 20, 3, 0.0), "ci": Profile("ci", 60, 3, 10.0), "thorough": Profile("thorough", 1000, 3, 120.0)}


def profile_named(name: str | Profile) -> Profile:
    """A profile by its name. Raises ValueError for an unknown name.

    >>> profile_named("ci").examples
    60
    """
    if isinstance(name, Profile):
        return name
    if name not in PROFILES:
        raise ValueError(f"symgrad.testing: profile is {name!r}; expected one of {', '.join(PROFILES)}")
    return PROFILES[name]
