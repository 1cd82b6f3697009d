"""Who is caught, by which checks, in how many seeds: `python -m tests.power.measuring` measures, and writes measured.json and README.md.

`--only NAME` measures some entries again, `--checkers` what torch and JAX say, `--seeds N` with fewer seeds (nothing is written then).
"""

import argparse
import contextlib
import functools
import importlib
import json
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from symgrad.testing import check_op
from symgrad.testing.attack import Attack
from symgrad.testing.claims import Profile, silence
from tests.power.power_entries import RIGHT, WRONG

for _module in "wrong_values wrong_gradients wrong_arrays wrong_behaviour wrong_rarely right_numbers right_arrays right_rarely".split():
    importlib.import_module(f"tests.power.{_module}")

ENTRIES = {**{f"wrong/{name}": e for name, e in WRONG.items()}, **{f"right/{name}": e for name, e in RIGHT.items()}}
RECORD = Path(__file__).with_name("measured.json")
SEEDS, FEW = 20, 5  # for wrong ops, and for right ones, for which every check is run each time
BRIEF = Profile("brief", 5, 3, 0.0)  # as dev, with fewer random examples
WHOLE = 2  # seeds for which every check is run


def attacked(entry, seed, checks=None, profile="dev", known=None):
    """The checks that find something wrong with an op under one seed, and what; `known` keeps what is true of it for further seeds."""
    attack = Attack(entry.make(), profile=profile, seed=seed, **entry.claims)
    attack.shrink = False  # what is found counts, not how it is told
    if known is not None and attack.claims.formula is not None:
        attack.__dict__["truth"] = known["truth"] = known.get("truth") or attack.truth
    report = check_op(attack, checks=checks, raise_exception=False)
    return {r.check: r.reason for r in report.results if r.failure is not None}


def measured(entry, seeds=range(SEEDS), wrong=True):
    """In how many seeds an op is caught, and by which checks.

    All checks are run for the first seeds, and for a right op for all; for a wrong one afterwards those that found most, and all where they do not.
    """
    found, counts, known = 0, Counter(), {}
    for k, seed in enumerate(seeds):
        again = [name for name, _ in counts.most_common(2)] if wrong and k >= WHOLE else []
        caught = again and attacked(entry, seed, checks=again, known=known)
        if not caught:
            caught = attacked(entry, seed, known=known)
            counts.update(list(caught))
        found += bool(caught)
    return {"caught": found, "checks": sorted(counts, key=lambda name: (-counts[name], name))}


@functools.cache
def _arguments(name, says):
    """How many arguments an op has."""
    entry = next(e for e in ENTRIES.values() if (e.name, e.says) == (name, says))
    return len(Attack(entry.make(), **entry.claims).names)


def customary(entry, seed):
    """The random point that a framework's own checker is customarily asked at: standard normal, moved into the domain where there is one."""
    rng = np.random.default_rng(seed)
    shapes = entry.claims.get("shapes") or ((4,),) * _arguments(entry.name, entry.says)
    out = []
    for shape in shapes:
        x = rng.standard_normal(shape)
        if entry.category == "complex":
            x = x + 1j * rng.standard_normal(shape)
        out.append({"normal": lambda x=x: x, "positive": lambda x=x: np.abs(x) + 0.01, "negative": lambda x=x: -np.abs(x) - 0.01,
                    "above 1": lambda x=x: 1.01 + np.abs(x), "unit": lambda shape=shape: rng.uniform(0.01, 0.99, shape)}[entry.point]())
    return out


def _said(call):
    """Whether a checker finds something wrong: it says so, or the op raises."""
    with silence(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call() is False
        except Exception:  # the checkers' own and the op's
            return True


def torch_says(entry, seeds=range(SEEDS)):
    """In how many seeds `gradcheck`, and `gradgradcheck`, find something; None where torch cannot say the op."""
    import torch

    from tests.power.twins_torch import torch_twin

    if torch_twin(entry) is None:
        return None
    out = []
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        forward = {"check_forward_ad": True} if entry.category == "modes" and check is torch.autograd.gradcheck else {}
        count = 0
        for seed in seeds:
            torch.manual_seed(seed)
            xs = tuple(torch.tensor(x, requires_grad=True) for x in customary(entry, seed))
            count += _said(lambda check=check, xs=xs, forward=forward: check(torch_twin(entry), xs, **forward))
        out.append(count)
    return out


def jax_says(entry, seeds=range(SEEDS)):
    """In how many seeds `check_grads` of the orders 1 and 2 finds something; None where JAX cannot say the op."""
    import jax
    from jax.test_util import check_grads

    jax.config.update("jax_enable_x64", True)
    from tests.power.twins_jax import jax_twin, modes_of

    if jax_twin(entry) is None:
        return None
    out = []
    for order in (1, 2):
        out.append(sum(_said(lambda order=order, seed=seed: check_grads(
            jax_twin(entry), tuple(customary(entry, seed)), order=order, modes=modes_of(entry))) for seed in seeds))
    return out


def checkers(entry, seeds=range(SEEDS)):
    """What torch's and JAX's own checkers say of the same op."""
    return {"torch": torch_says(entry, seeds), "jax": jax_says(entry, seeds)}


def recorded():
    """The measurements that stand in the table."""
    return json.loads(RECORD.read_text()) if RECORD.exists() else {}


README = Path(__file__).with_name("README.md")
HEAD = Path(__file__).with_name("head.md").read_text(encoding="utf-8")


def _of(counts, k):
    return "–" if counts is None else str(counts[k])


def _row(name, entry, found):
    checks = ", ".join(found.get("checks", ()))
    torch, jax = found.get("torch"), found.get("jax")
    cells = [name, entry.says, str(found.get("caught", "")), checks, _of(torch, 0), _of(torch, 1), _of(jax, 0), _of(jax, 1)]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _counts(table, group, record):
    """How many ops each checker finds something wrong with: in all seeds, in some."""
    out = []
    found = [record.get(f"{group}/{name}", {}) for name in table]
    columns = {"symgrad `check_op`": [f.get("caught") for f in found]}
    for framework, names in (("torch", ("`gradcheck`", "`gradgradcheck`")), ("jax", ("`check_grads` order 1", "`check_grads` order 2"))):
        for k, name in enumerate(names):
            columns[f"{ {'torch': 'torch', 'jax': 'JAX'}[framework] } {name}"] = [f[framework][k] if f.get(framework) else None for f in found]
    for column, numbers in columns.items():
        said = [n for n in numbers if n is not None]
        out.append((column, len(said), sum(n == SEEDS for n in said), sum(0 < n < SEEDS for n in said), sum(n == 0 for n in said)))
    return out


def _summary(record):
    lines = []
    for title, table, group in (("Wrong ops: caught", WRONG, "wrong"), ("Right ops: accused", RIGHT, "right")):
        lines += [f"| {title} | ops | in every seed | in some | never |", "|---|---|---|---|---|"]
        lines += [f"| {' | '.join(map(str, row))} |" for row in _counts(table, group, record)]
        lines.append("")
    return "\n".join(lines).rstrip()


def text(record):
    """The whole page."""
    parts = [HEAD.format(wrong=len(WRONG), right=len(RIGHT), seeds=SEEDS, few=FEW, summary=_summary(record))]
    for title, table, group in (("Wrong ops", WRONG, "wrong"), ("Right ops", RIGHT, "right")):
        parts.append(f"## {title}\n")
        for category in dict.fromkeys(e.category for e in table.values()):
            what = "what is wrong | caught in" if group == "wrong" else "what is difficult | accused in"
            parts.append(f"\n### {category}\n\n| op | {what} | by | gradcheck | gradgradcheck | check_grads 1 | check_grads 2 |\n{'|---' * 8}|\n")
            parts += [_row(name, e, record.get(f"{group}/{name}", {})) + "\n" for name, e in table.items() if e.category == category]
        parts.append("\n")
    return "".join(parts).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="entries, or wrong, or right")
    parser.add_argument("--missing", action="store_true", help="only those without a complete measurement")
    parser.add_argument("--checkers", action="store_true", help="what torch and JAX say, not symgrad")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    given = parser.parse_args()
    record = recorded()
    start = time.time()
    for name, entry in ENTRIES.items():
        group, _, own = name.partition("/")
        if given.only is not None and not {group, own, name} & set(given.only):
            continue
        done = record.get(name, {})
        if given.missing and ("torch" in done if given.checkers else done.get("caught") == (SEEDS if group == "wrong" else 0)):
            continue
        before = time.perf_counter()
        seeds = range(given.seeds if given.checkers or group == "wrong" else min(given.seeds, FEW))
        found = checkers(entry, seeds) if given.checkers else measured(entry, seeds, group == "wrong")
        print(f"{name:55} {time.perf_counter() - before:6.1f} s  {json.dumps(found)}", flush=True)
        if given.seeds == SEEDS:
            fresh = recorded()  # another process may measure the rest
            fresh[name] = {**fresh.get(name, {}), **found}
            RECORD.write_text(json.dumps({k: fresh[k] for k in ENTRIES if k in fresh}, indent=0) + "\n")
    print(f"{time.time() - start:.0f} s")
    if given.seeds == SEEDS:
        README.write_text(text(recorded()))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
