"""Calls of functions as programs write them, beside torch: values, dtypes, shapes and derivatives of two orders, or the type of the error."""

import pytest

from .beside import FOLDER, Section, differences, sections

SECTIONS = {f"{path.stem}-{section.name}": section for path in sorted(FOLDER.glob("*.txt")) for section in sections(path.stem)}


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("name", SECTIONS)
def test_calls_give_what_they_give_in_torch(name):
    found = differences(SECTIONS[name])
    assert not found, "\n".join(found)


@pytest.mark.usefixtures("double_precision")
@pytest.mark.parametrize("call", ["x * 2 ~ x * 3", "x.sum() ~ x.prod()", "x.detach().sin() ~ x.sin()", "x * x ~ x * x.detach()", "x.long() ~ x.int()",
                                  "x[5] ~ x[0]", "x[5] ~ x.foo()", "[x, 1] ~ [x, 2]"])
def test_the_comparison_can_fail(call):
    section = Section("", "x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)", [call], 1e-9, frozenset())
    assert differences(section) and not differences(section._replace(calls=[call.partition(" ~ ")[0]]))
