"""Homes for the stores, and other users to run them as."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from climate import embedded

ROOT = Path(__file__).parents[2]
STRANGER = 54321
"""A uid that no user data base knows."""


@pytest.fixture(scope="session")
def data() -> Iterator[Path]:
    """A home in which the stores ran once."""
    home = Path(tempfile.mkdtemp(prefix="climate-made-", dir=_roomy_memory())) / "var"
    with embedded.run(home):
        pass
    yield home
    shutil.rmtree(home.parent)


def _roomy_memory() -> str | None:
    """A folder in memory: what the disk takes to write safely is not what these tests are about."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**30
    return str(memory) if roomy else None


@pytest.fixture
def fresh() -> Iterator[Path]:
    """A home in which nothing ever ran, and that every user can reach, unlike pytest's folders."""
    top = Path(tempfile.mkdtemp(prefix="climate-test-", dir=_roomy_memory()))
    top.chmod(0o755)
    yield top / "var"
    shutil.rmtree(top)


@pytest.fixture
def home(fresh: Path, data: Path) -> Path:
    """Such a home, with PostgreSQL's data made already, as that takes half of the time of a test."""
    fresh.mkdir()
    subprocess.run(["cp", "-a", data / "postgres", fresh], check=True)
    return fresh


@pytest.fixture
def as_user() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a piece of Python as the ordinary user `nobody`, or another uid; only root can do this."""
    if os.geteuid():
        pytest.skip("only root can become another user")

    def run(script: str, *words: str, uid: int = 65534) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", script, *words],
            user=uid,
            group=uid,
            extra_groups=[],
            cwd="/",
            env={"PATH": os.defpath, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    try:
        reached = run("import climate.embedded").returncode == 0
    except PermissionError:
        reached = False
    if not reached:
        pytest.skip("this tree, or its Python, cannot be reached by ordinary users")
    return run
