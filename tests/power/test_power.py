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


@pytest.mark.sampled(20)
@wrong
def test_a_wrong_op_is_caught(entry, seed):
    assert is_caught(entry, seed)


@pytest.mark.sampled(6)
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


SAID = """
adjoint | pushforward wrong | ⟨g, jvp(t)⟩ is not ⟨vjp(g), t⟩
adjoint | pullback wrong | ⟨g, jvp(t)⟩ is not ⟨vjp(g), t⟩
adjoint | pushforward of one | ⟨g, jvp(t)⟩ is not ⟨vjp(g), t⟩
aliasing | one tensor given twice | the value for one tensor given twice is not that for two equal ones
aliasing | gradient of a tensor given twice | the gradient by one tensor given twice is not the sum of those by two equal ones
aliasing | returns its input | the value shares memory with argument 0; claim view=True where it should
aliasing | value on the input's memory | the value shares memory with argument 0; claim view=True where it should
aliasing | cotangent given to both | the gradient shares memory with the cotangent
aliasing | gradient is the saved input | the gradient shares memory with argument 1
batching | batch mixed | the value with the arguments [0] batched is not that of a loop
batching | vmap without the other gradient | the pullback with the arguments [0] batched is not that of a loop
broadcasting | forgets to sum | the derivative is not that of the expanded arguments, summed: the shape is (2, 3) and should be (2, 1)
broadcasting | means where it should sum | the derivative is not that of the expanded arguments, summed
broadcasting | sums leading axes only | the derivative is not that of the expanded arguments, summed: the shape is (2, 3) and should be (2, 1)
broadcasting | refuses to broadcast | raised ValueError: shapes differ
broadcasting | broadcast from the left | the value is not that of the expanded arguments
complex | conjugate forgotten | the pullback is not what finite differences say
complex | conjugate twice | the pullback is not what finite differences say
complex | value conjugated | the pullback is not what finite differences say
determinism | every third call | the value is another when it is called again
determinism | remembers the last input | the value is another when it is called again
determinism | random | the value is another when it is called again
determinism | shape of the last call | the gradient is another when the op was called with another shape before the pullback
determinism | backward in another thread | the gradient is another when the pullback runs in another thread than the call
empty | empty becomes one | the shape of the value is (1,) and should be (0,)
empty | empty raises | raised IndexError
empty | largest of empty | raised RuntimeError: amax
errors | no error | is not refused and should raise ValueError
errors | another error | and should raise ValueError
errors | another message | raises ValueError: bad value, in which 'positive' is not found
formulas | gradient without a formula | the derivative has no formula, though the value has one
layouts | memory order | the value for backwards arrays is not that for contiguous ones
layouts | memory order in the gradient | the gradient for backwards arrays is not that for contiguous ones
layouts | writes to read-only | raised ValueError: output array is read-only
layouts | clips its input in place | argument 0 (strided) was changed
linearity | divided by the cotangent | vjp(0) is not 0
linearity | cotangent added | vjp(2g - 3h) is not 2 vjp(g) - 3 vjp(h)
linearity | cotangent clipped | vjp(2g - 3h) is not 2 vjp(g) - 3 vjp(h)
linearity | cotangent without its sign | vjp(2g - 3h) is not 2 vjp(g) - 3 vjp(h)
mixed | cotangent detached | the pullback, differentiated by its cotangent, is not the pushforward
mutation | clips its input in place | argument 0 was changed
mutation | saved input overwritten | argument 0 was changed
mutation | cotangent scaled in place | the cotangent was changed
mutation | one buffer for the values | the value that was returned was changed by a later call
mutation | seeds the generator | NumPy's generator of random numbers is not what was there before the call
mutation | draws from the generator | Python's generator of random numbers is not what was there before the call
mutation | silences NumPy | NumPy's handling of errors is not what was there before the call
mutation | another default dtype | symgrad's default dtype is not what was there before the call
pickling | forgets when pickled | the value is another after pickling
scalars | single number becomes a vector | the shape of the value is (1,) and should be ()
scalars | single number raises | raised IndexError
scalars | gradient of a single number | the shape of the gradient is (1,) and should be ()
special | relu is NaN at 0 | the gradient is no mean of those around the point, which go from [0.0] to [1.0]
special | abs is 5 at 0 | the gradient is no mean of those around the point, which go from [-1.0] to [1.0]
structure | right for both arguments only | the gradient by this argument alone is not that among others
structure | columns become rows | the shape of the value is (20,) and should be (20, 1), for the same elements in that shape
structure | value of another shape | the shape of the value is (20,) and should be (20, 1), for the same elements in that shape
structure | last block forgotten | the value for the shape (130, 2) is not that of the same elements in a row
structure | gradient of another shape | the shape of the gradient is (1, 20) and should be (20,)
structure | too many gradients | backward must return 1 gradients, one for each argument of forward, not 2
structure | too few NumPy gradients | has 1 part for 2 arguments; expected one array for each
structure | returns float64 | the dtype of the value is float64 and should be float32
structure | NumPy gradient is float64 | the dtype of the gradient is float64 and should be float32
symmetry | not symmetric | ⟨s, H t⟩ is not ⟨t, H s⟩
symmetry | second of two wrong | ⟨s, H t⟩ is not ⟨t, H s⟩
threads | only the main thread | the value is another while other threads call it
"""


@pytest.mark.parametrize("line", SAID.strip().splitlines())
def test_what_a_check_says_of_a_wrong_op(line):
    check, name, words = map(str.strip, line.split("|"))
    assert re.search(re.escape(words), attacked(WRONG[name], 0, checks=[check])[check])


ORDERS = ("value", "pullback", "pushforward", "second", "third")


@pytest.mark.parametrize("name, found", [("third order detached", {"third"}), ("helper twice as steep", {"second", "third"}),
                                         ("factor forgotten", {"pullback", "pushforward", "second"}), ("pushforward wrong", {"pushforward"}),
                                         ("constant off", {"value"}), ("zero for a small function", {"pullback", "pushforward", "second", "third"})])
def test_the_order_that_is_wrong_is_named(name, found):
    assert set(attacked(WRONG[name], 0, checks=[c for c in CHECKS if c in ORDERS])) == found
