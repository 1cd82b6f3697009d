"""What the wheel and the sdist hold. That both work in fresh environments is asked by `python -m tests.distribution`, a step of CI."""

import configparser
import email
import tarfile
import tomllib
import zipfile

import pytest

from tests.distribution.building import ROOT, VERSIONS, build

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INFO = f"symgrad-{PROJECT['version']}.dist-info"


def sources(folder):
    """The files of a folder of the checkout, without what programs leave there."""
    caches = {"__pycache__", ".hypothesis", ".ruff_cache"}
    return {str(p.relative_to(ROOT)) for p in (ROOT / folder).rglob("*") if p.is_file() and not caches & {*p.parts}}


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    wheel, sdist = build(tmp_path_factory.mktemp("built"))
    return contents(wheel), sdist


@pytest.fixture(scope="module")
def unpacked(built, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(built[1]) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


@pytest.mark.sweep
def test_the_wheel_has_the_package_and_the_plugin_and_nothing_else(built):
    entry = "symgrad/testing/entry/pytest_symgrad.py"
    expected = sources("symgrad") - {"symgrad/conftest.py", entry} | {"pytest_symgrad.py"}
    assert {name for name in built[0] if not name.startswith(f"{INFO}/")} == expected
    data = "py.typed", "__init__.pyi", "engine/tensor.pyi", "engine/documentation.txt", "engine/sentences.txt"
    assert {f"symgrad/{name}" for name in data} <= expected
    assert built[0]["pytest_symgrad.py"] == (ROOT / entry).read_bytes()
    assert built[0][f"{INFO}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()


@pytest.mark.sweep
def test_the_metadata_name_the_programs_and_five_requirements(built):
    points = configparser.ConfigParser()
    points.read_string(built[0][f"{INFO}/entry_points.txt"].decode())
    assert {group: dict(points[group]) for group in points.sections()} == {
        "console_scripts": {"symgrad": "symgrad.cli:main"}, "pytest11": {"symgrad": "pytest_symgrad"}}
    metadata = email.message_from_bytes(built[0][f"{INFO}/METADATA"])
    required = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert sorted(required) == sorted(PROJECT["dependencies"]) and len(required) == 5
    assert metadata["Requires-Python"] == f">={VERSIONS[0]}" and metadata["Version"] == PROJECT["version"]
    assert metadata["Description-Content-Type"] == "text/markdown"


@pytest.mark.sweep
def test_the_sdist_has_the_sources_the_tests_and_the_licence(unpacked):
    found = {str(p.relative_to(unpacked)) for p in unpacked.rglob("*") if p.is_file()}
    folders = {name for folder in ("symgrad", "tests", "examples", "papers") for name in sources(folder)}
    assert found == folders | {"LICENSE", "CHANGELOG.md", "README.md", "pyproject.toml", "PKG-INFO", ".gitignore"}


@pytest.mark.sweep
def test_the_sdist_builds_the_same_wheel(built, unpacked, tmp_path):
    wheel, _ = build(tmp_path, unpacked)
    assert contents(wheel) == built[0]
