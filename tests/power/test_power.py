"""Every wrong op of the corpus is caught, and every third right one is not accused, with one seed each; the table; and what the checks say of them.

Where HYPOTHESIS_PROFILE is thorough, all of them are attacked with every seed of the table.
"""

import os
import re

import pytest

from symgrad.testing.checks import CHECKS
from tests.power import measuring
from tests.power.measuring import attacked
from tests.power.power_entries import RIGHT, WRONG
from tests.power.wrong_calls import OWN
from tests.support.lines import lines

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
RECORD = measuring.recorded()


def cases(table, foreign):
    """The ops of torch, which tests/parity attacks, or all others, each with a seed."""
    return [pytest.param(entry, k % measuring.SEEDS, id=name) for k, (name, entry) in enumerate(table.items())
            if (entry.claims.get("framework") == "torch") is foreign]


wrong, wrong_of_torch = (pytest.mark.parametrize("entry, seed", cases(WRONG, foreign)) for foreign in (False, True))
THIRD = {name: entry for k, (name, entry) in enumerate(RIGHT.items()) if THOROUGH or k % 3 == 2}
right, right_of_torch = (pytest.mark.parametrize("entry, seed", cases(THIRD, foreign)) for foreign in (False, True))


def is_caught(entry, seed):
    if THOROUGH:
        return measuring.measured(entry)["caught"] == measuring.SEEDS
    first, *others = RECORD[f"wrong/{entry.name}"]["checks"]
    return bool(measuring.attacked(entry, seed, checks=[first]) or measuring.attacked(entry, seed, checks=others))


def accused(entry, seed):
    seeds = range(measuring.FEW) if THOROUGH else [seed]
    return [found for each in seeds if (found := measuring.attacked(entry, each, profile="dev" if THOROUGH else measuring.BRIEF))]


@pytest.mark.sampled(3)
@wrong
def test_a_wrong_op_is_caught(entry, seed):
    assert is_caught(entry, seed)


@pytest.mark.sampled(1)
@right
def test_a_right_op_is_not_accused(entry, seed):
    assert not accused(entry, seed)


def test_the_corpus_is_large_enough_and_every_op_has_its_own_name():
    assert len(WRONG) >= 70 and len(RIGHT) >= 65
    assert not set(WRONG) & set(RIGHT)


def test_nothing_is_missed_and_nobody_accused():
    assert list(RECORD) == list(measuring.ENTRIES)
    assert {name: RECORD[f"wrong/{name}"]["caught"] for name in WRONG} == dict.fromkeys(WRONG, measuring.SEEDS)
    assert {name: RECORD[f"right/{name}"]["caught"] for name in RIGHT} == dict.fromkeys(RIGHT, 0)
    assert {name: RECORD[f"call/{name}"]["caught"] for name in OWN} == dict.fromkeys(OWN, measuring.FEW)


def test_each_kind_of_mistake_is_found_by_some_check_and_each_check_finds_some():
    found = {check for name in WRONG for check in RECORD[f"wrong/{name}"]["checks"]}
    assert found <= set(CHECKS)
    # "proof" is not run at the profile dev; "compiled" finds mistakes of recording and of back ends, not of an op, whose rules both sides have
    assert set(CHECKS) - found <= {"proof", "compiled"}


def test_the_readme_is_the_record():
    assert measuring.README.read_text() == measuring.text(RECORD)


def test_the_guide_has_the_same_figures():
    text = (measuring.README.parents[2] / "examples" / "guide" / "new_ops.md").read_text()
    caught = {group: [r["caught"] for name, r in RECORD.items() if name.startswith(group)] for group in ("wrong", "right")}
    assert f"holds {len(WRONG)} ops that are wrong, each in one way, and {len(RIGHT)} that are right and difficult" in text
    rows = [f"| {sum(n == measuring.SEEDS for n in caught['wrong'])} of {len(WRONG)} ({measuring.SEEDS} seeds) | "
            f"{sum(n > 0 for n in caught['right'])} of {len(RIGHT)} ({measuring.FEW} seeds) |"]
    for framework in ("torch", "jax"):
        said = {group: [r[framework] for name, r in RECORD.items() if name.startswith(group) and r.get(framework)] for group in caught}
        found, accused = ([sum(row[k] >= least for row in said[group]) for k in (0, 1)]
                          for group, least in (("wrong", measuring.SEEDS), ("right", 1)))
        rows.append("| {} and {} of {} | {} and {} of {} |".format(*found, len(said["wrong"]), *accused, len(said["right"])))
    assert all(row in text for row in rows), rows


@pytest.mark.sampled(3)
@pytest.mark.parametrize("check, name, words", lines("said"))
def test_what_a_check_says_of_a_wrong_op(check, name, words):
    assert re.search(re.escape(words), attacked(WRONG[name], 0, checks=[check])[check])


ORDERS = ("value", "pullback", "pushforward", "second", "third")


@pytest.mark.sweep
@pytest.mark.parametrize("name, found", [("third order detached", {"third"}), ("helper twice as steep", {"second", "third"}),
                                         ("factor forgotten", {"pullback", "pushforward", "second"}), ("pushforward wrong", {"pushforward"}),
                                         ("constant off", {"value"}), ("zero for a small function", {"pullback", "pushforward", "second", "third"})])
def test_the_order_that_is_wrong_is_named(name, found):
    assert set(attacked(WRONG[name], 0, checks=[c for c in CHECKS if c in ORDERS])) == found
