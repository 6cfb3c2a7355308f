"""Wheel and sdist of this repository, built and installed for tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PIP = ("-m", "pip", "--disable-pip-version-check", "--python")


def build_sdist(folder: Path) -> Path:
    """Build the sdist of the repository into `folder`."""
    return _build(ROOT, folder, "sdist")


def build_wheel(folder: Path, sdist: Path) -> Path:
    """Build the wheel out of an unpacked sdist, as an installer without the repository does."""
    unpacked = folder / "source"
    unpacked.mkdir()
    _run("tar", "-xf", str(sdist), "-C", str(unpacked))
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


def install(wheel: Path, environment: Path) -> Path:
    """Create an empty environment with the locked dependencies and the wheel; return the folder of its programs.

    As in the Makefile, uv installs where it is there, and the pip of the outer Python otherwise.
    """
    outer = os.path.realpath(sys.executable)
    _run(outer, "-m", "venv", "--without-pip", str(environment))
    python = str(environment / "bin" / "python")
    uv = shutil.which("uv")
    words = (uv, "pip", "install", "-q", "--python", python) if uv else (outer, *PIP, python, "install", "-q")
    _run(*words, "--require-hashes", "-r", str(ROOT / "requirements.lock"))
    _run(*words, "--no-deps", str(wheel))
    return environment / "bin"


def _run(*words: str, cwd: Path | None = None) -> str:
    ran = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=540, check=False)
    assert ran.returncode == 0, f"{' '.join(words)}\n{ran.stdout}{ran.stderr}"
    return ran.stdout
