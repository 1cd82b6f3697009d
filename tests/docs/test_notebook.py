"""The notebook of the guide is executed, and shows what is stored in it."""

import nbclient
import nbformat
import pytest

from tests.support.pages import ROOT

NOTEBOOK = ROOT / "examples" / "guide" / "quickstart.ipynb"


def shown(cell):
    """What a cell shows, by the kind of text, without the largest errors of floats, which depend on the machine."""
    assert {output.output_type for output in cell.outputs} == {"execute_result"}, cell.outputs
    return [{kind: text.partition("Largest error of the floats")[0] for kind, text in output.data.items()} for output in cell.outputs]


@pytest.mark.sweep
def test_the_notebook_shows_what_is_stored():
    stored, run = (nbformat.read(NOTEBOOK, as_version=4) for _ in range(2))
    nbclient.NotebookClient(run, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    cells = [(cell, again) for cell, again in zip(stored.cells, run.cells, strict=True) if cell.cell_type == "code"]
    for cell, again in cells:
        assert shown(again) == shown(cell), cell.source
    kinds = {kind for cell, _ in cells for found in shown(cell) for kind in found}
    assert kinds == {"text/plain", "text/latex", "image/svg+xml", "text/html", "text/markdown"}


def test_the_notebook_has_no_traces_of_its_run():
    stored = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(stored)
    assert not any(cell.metadata for cell in stored.cells) and set(stored.metadata) == {"kernelspec", "language_info"}
    assert stored.cells[-1].source.startswith("## What can go wrong\n")
