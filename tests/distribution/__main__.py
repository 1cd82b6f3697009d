"""`python -m tests.distribution` builds the wheel and the sdist and installs both into fresh environments of each Python that is found, and into
one with the oldest versions of what symgrad requires.

A program that uses every part of symgrad runs there with the options of Python that change what code means, away from the sources, without
optional packages and without a C compiler; nothing may be printed to standard error. Which Pythons ran is printed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.distribution.building import ROOT, SMOKE, VERSIONS, build
from tests.distribution.smoke import SOURCE

WHEEL_RUNS = (("-W", "error", "-X", "dev"), (), ("-OO",))
SDIST_RUNS = (("-O",),)
OLDEST = f"{VERSIONS[0]} and the oldest versions of what is required"
COMMANDS = ("symgrad --help", "symgrad check gas.py --quiet --points 3", 'symgrad derive "exp(sin(x))*y" --at x=1,y=2 --quiet --points 3',
            "python -m symgrad --version")


class Failed(Exception):
    """A command failed, or printed to standard error."""


def found(version: str) -> str | None:
    """The Python of a version: the running one, one on the PATH, or one of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    named = [sys.executable, shutil.which(f"python{version}"), *sorted(map(str, pyenv.glob(f"versions/{version}.*/bin/python")), reverse=True)]
    for python in filter(None, named):  # a shim of pyenv may stand for no version
        ran = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True)
        if ran.stdout.strip() == version:
            return python
    return None


def run(command: list[str], folder: Path, path: str, quiet: bool = True) -> str:
    """What a command prints in an environment without the variables of this one."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "LANG", "HTTP", "http", "NO_PROXY"))}
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL,
                         env={**kept, "HOME": os.environ["HOME"], "PATH": path, "SYMGRAD_CACHE_DIR": str(folder / "cache")})
    if ran.returncode or quiet and ran.stderr:
        raise Failed(f"{' '.join(command)} exits with {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def oldest() -> list[str]:
    """The requirements of symgrad, each with its oldest version."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        return [requirement.replace(">=", "==") for requirement in tomllib.load(file)["project"]["dependencies"]]


def works(python: str, wheel: Path, sdist: Path, folder: Path, requirements: Sequence[str] = ()) -> str:
    """Install both into a new environment, one after the other, and run the program; return what was done."""
    start, environment, away = time.monotonic(), folder / "environment", folder / "away"
    away.mkdir(parents=True)
    (away / "gas.py").write_text(SOURCE, encoding="utf-8")
    run([python, "-m", "venv", str(environment)], away, os.defpath)
    bin = environment / "bin"
    counts = []
    for archive, options in ((wheel, WHEEL_RUNS), (sdist, SDIST_RUNS)):
        run([f"{bin}/pip", "install", "--no-compile", str(archive), *requirements], away, os.defpath, quiet=False)
        for each in options:
            run([f"{bin}/python", *each, str(SMOKE), str(environment)], away, str(away))  # a PATH without compilers
        for command in COMMANDS:
            printed = run(["sh", "-c", command], away, f"{bin}{os.pathsep}{os.defpath}")
            if not printed:
                raise Failed(f"{command} prints nothing")
        run([f"{bin}/pip", "uninstall", "--yes", "symgrad"], away, os.defpath, quiet=False)
        files = [str(p.relative_to(environment)) for p in environment.rglob("*.*") if p.suffix != ".pyc" and p.is_file()]
        if left := [name for name in files if "symgrad" in name]:
            raise Failed(f"{archive.name} leaves {left}")
        counts.append(f"{archive.name}: {len(options)} programs, {len(COMMANDS)} commands")
    return f"{'; '.join(counts)} ({time.monotonic() - start:.0f} s)"


def main() -> int:
    """Run everything, print the outcome for each Python, and return 1 if one failed."""
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(os.cpu_count()) as pool:
        wheel, sdist = build(Path(made))
        pythons = {version: found(version) for version in VERSIONS}
        runs = {version: pool.submit(works, python, wheel, sdist, Path(made) / version) for version, python in pythons.items() if python}
        if first := pythons[VERSIONS[0]]:
            runs[OLDEST] = pool.submit(works, first, wheel, sdist, Path(made) / "oldest", oldest())
        failed = False
        for version in (*VERSIONS, OLDEST):
            try:
                outcome = f"passed: {runs[version].result()}" if version in runs else "skipped: not found"
            except Failed as error:
                failed, outcome = True, f"FAILED: {error}"
            print(f"Python {version} {outcome}", flush=True)
    return int(failed or not runs)


if __name__ == "__main__":
    sys.exit(main())
