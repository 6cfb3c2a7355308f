"""Wheel and sdist of this repository, built and installed for tests."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.doc_pages import blocks, section

ROOT = Path(__file__).parent.parent
OUTER = os.path.realpath(sys.executable)
"""The Python outside of the environment in which the tests run."""


def build_sdist(folder: Path) -> Path:
    """Build the sdist of the repository into `folder`."""
    return _build(ROOT, folder, "sdist")


def build_wheel(folder: Path, sdist: Path) -> Path:
    """Build the wheel out of an unpacked sdist, as an installer without the repository does."""
    unpacked = folder / "source"
    unpacked.mkdir()
    _run("tar", "-xf", str(sdist), "-C", str(unpacked), cwd=folder)
    (source,) = unpacked.iterdir()
    return _build(source, folder, "wheel")


def _build(source: Path, folder: Path, target: str) -> Path:
    before = {*folder.glob("*.*")}
    _run(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder), cwd=source)
    (built,) = {*folder.glob("*.*")} - before
    return built


def runtime_files() -> set[str]:
    """Return the paths of all files of the five packages, tracked by git or new."""
    packages = ("climate", "api", "workers", "plugins", "migrations")
    listed = _run("git", "ls-files", "--cached", "--others", "--exclude-standard", *packages, cwd=ROOT)
    return {path for path in listed.splitlines() if (ROOT / path).is_file()}


def has_pip() -> bool:
    """Return whether the outer Python has pip, and can put it into a new environment."""
    return subprocess.run([OUTER, "-c", "import ensurepip, pip"], capture_output=True, check=False).returncode == 0


def install(folder: Path) -> Path:
    """Install from wheels by the commands of docs/install.md, with `folder` for /; return where the programs are."""
    made = f"{sys.prefix}/installed"
    _run("make", "wheels", "-o", made, f"VENV={sys.prefix}", f"PY={OUTER}", f"DIST={folder}/dist", cwd=ROOT)
    (folder / "requirements.lock").symlink_to(ROOT / "requirements.lock")
    (folder / "opt").mkdir()
    (python := folder / "python").mkdir()
    (python / "python3").symlink_to(OUTER)
    (commands,) = (block for block in blocks(section("install", "The wheel")) if "venv" in block)
    environ = {"PATH": f"{python}:{os.defpath}", "HOME": str(folder), "PIP_CONFIG_FILE": os.devnull}
    _run("sh", "-euc", commands.replace("/opt/", f"{folder}/opt/"), cwd=folder, environ=environ)
    return folder / "opt" / "climate" / "bin"


def _run(*words: str, cwd: Path, environ: Mapping[str, str] | None = None) -> str:
    ran = subprocess.run(words, cwd=cwd, env=environ, capture_output=True, text=True, timeout=540, check=False)
    assert ran.returncode == 0, f"{' '.join(words)}\n{ran.stdout}{ran.stderr}"
    return ran.stdout
