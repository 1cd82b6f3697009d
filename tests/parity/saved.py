"""Write down what torch keeps of each op for its backward pass: `python -m tests.parity.saved` writes tests/support/data/saved.json.

The calls stand in saved.txt beside it.

The file maps the text of a call over the names `a`, `b`, `c` to, for each set of arguments that require grad, the name of the node and its
`_saved_*` attributes. A tensor reads as the name of the argument it is (`a`, `b`, `c` or `result`; `view of ..` if only the memory is the same,
`new` if it is neither and `number 2.0` if it is a number), anything else as its value.
"""

import itertools
import json

import torch

from tests.support.saved_calls import DATA, groups


def read(value, known):
    """One saved attribute, for the file."""
    if isinstance(value, torch.Tensor):
        for name, t in known.items():
            if isinstance(t, torch.Tensor) and t.untyped_storage().data_ptr() == value.untyped_storage().data_ptr():
                same = t.shape == value.shape and t.stride() == value.stride() and t.data_ptr() == value.data_ptr()
                return name if same else f"view of {name}"
        return f"number {value.item()}" if value.dim() == 0 else "new"
    if isinstance(value, (tuple, list)):
        return [read(v, known) for v in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def record(text, data, in_place):
    """What one call saves, for each set of arguments that require grad."""
    entry = {}
    names = [name for name, _ in zip("abc", data) if name in text.replace("abs", "").replace("torch", "") or name == "a"]
    for count in range(1, len(names) + 1):
        for chosen in itertools.combinations(names, count):
            leaves = {n: torch.tensor(d, dtype=torch.float64, requires_grad=n in chosen) for n, d in zip(names, data)}
            known = {n: (t.clone() if in_place and n == "a" else t) for n, t in leaves.items()}
            scope = {"torch": torch, "F": torch.nn.functional, "m": torch.tensor([True, False, False]), "i": torch.tensor([0]), **known}
            try:
                result = eval(text, scope)  # noqa: S307  the texts are those above
            except Exception as error:
                entry[",".join(chosen)] = {"error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
                continue
            result = known["a"] if "__setitem__" in text else result
            node = result.grad_fn
            if node is None:
                entry[",".join(chosen)] = {"grad_fn": None, "requires_grad": result.requires_grad}
                continue
            seen = {("result" if in_place and n == "a" else n): t for n, t in known.items()} | ({} if in_place else {"result": result})
            saved = {"grad_fn": node.name()}
            for name in sorted(n for n in dir(node) if n.startswith("_saved_")):
                try:
                    saved[name] = read(getattr(node, name), seen)
                except RuntimeError as error:
                    saved[name] = f"error: {str(error).splitlines()[0]}"
            entry[",".join(chosen)] = saved
    return entry


def main():
    out = {text: record(text, data, in_place) for texts, data, in_place in groups() for text in texts}
    lines = [f"{json.dumps(text)}: {json.dumps(entry)}" for text, entry in out.items()]
    (DATA / "saved.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(len(out), "calls;", sum("error" in e for v in out.values() for e in v.values()), "errors")


if __name__ == "__main__":
    main()
