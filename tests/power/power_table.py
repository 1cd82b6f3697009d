"""README.md: the table of who is caught by which check, beside what torch's and JAX's own checkers say, from the recorded measurements."""

from pathlib import Path

from tests.power.power_entries import RIGHT, WRONG

__all__ = ["text", "write"]

README = Path(__file__).with_name("README.md")
SEEDS, FEW = 20, 5
HEAD = """# The power of the checks

`symgrad.testing` is measured on ops of which the truth is known: {wrong} that are wrong, each in one way, and {right} that are right and difficult.
Each is attacked by `check_op` at the profile `dev`, a wrong one with {seeds} seeds, a right one with {few}. Beside it stands what the checkers of the
frameworks say of the same ops, written again in torch and JAX: `gradcheck` and `gradgradcheck`, and `check_grads` of the orders 1 and 2 in both modes
(in the one mode that a `custom_vjp` has), with their default tolerances, in float64, at one standard normal point for each of {seeds} seeds (moved
into the domain). "–" stands where the framework cannot say the op, or where its checker has no notion of what is claimed.

`python -m tests.power.measuring` measures all of this again and writes this file; `tests/power/test_power.py` holds it to the record in
`measured.json` and attacks the ops with one seed in each run, and with all of them where `HYPOTHESIS_PROFILE` is `thorough`.

{summary}

"""


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


def write(record):
    """Write README.md."""
    README.write_text(text(record))
