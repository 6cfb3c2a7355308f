"""`climate demo` itself: every step verified on a stack of its own, and nothing left of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from climate.cli.demo import cluster_steps
from climate.cli.demo.demo import STEPS
from climate.embedded import running
from tests.campaign import length

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_step_is_verified_and_again_in_the_same_home(tmp_path: Path) -> None:
    own = {"CLIMATE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    for _ in range(length(1, 2)):
        demo = subprocess.run(
            [sys.executable, "-m", "climate", "demo"], env=own, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert demo.returncode == 0, demo.stdout + demo.stderr
        assert f"{len(STEPS)} of {len(STEPS)} steps verified" in demo.stdout
        assert running(tmp_path / "home") is None


@pytest.mark.campaign
@pytest.mark.timeout(900)
def test_every_step_of_the_demo_of_a_cluster_is_verified(tmp_path: Path) -> None:
    home = tmp_path / "home"
    own = {"CLIMATE_HOME": str(home), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-m", "climate", "demo", "--clusters"]
    demo = subprocess.run(command, env=own, cwd=ROOT, capture_output=True, text=True, check=False)
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert f"{len(cluster_steps.STEPS)} of {len(cluster_steps.STEPS)} steps verified" in demo.stdout
    assert running(home) is None
