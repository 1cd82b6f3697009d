"""Building the wheel and the sdist of the checkout."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

__all__ = ["ROOT", "SMOKE", "VERSIONS", "build"]

ROOT = Path(__file__).parents[2]
SMOKE = Path(__file__).parent / "smoke.py"
VERSIONS = ("3.11", "3.12", "3.13")


def build(folder: Path, root: Path = ROOT) -> tuple[Path, Path]:
    """The wheel and the sdist, built from the sources in `root` by the build backend of this environment, which asks no registry."""
    configuration = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    backend = configuration["build-system"]["build-backend"]
    code = f"import sys, {backend} as backend; print(backend.build_wheel(sys.argv[1])); print(backend.build_sdist(sys.argv[1]))"
    ran = subprocess.run([sys.executable, "-c", code, str(folder)], cwd=root, capture_output=True, text=True, timeout=120, check=True)
    wheel, sdist = ran.stdout.split()
    return folder / wheel, folder / sdist
