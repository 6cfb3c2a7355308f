"""A scheduler, host filter, filter, weigher and cost of another package place servers in a cloud."""

import subprocess
import sys
from pathlib import Path

from tests.system.packages import install

ROOT = Path(__file__).parents[2]
SAID = [
    "enrolled n3",
    "coolest n2 coolest 40.0",
    "stages ['ReservationFilter', 'RetryFilter', 'ComputeFilter'] n2",
    "shy n1 None",
    "lonely n1 None",
    "homely n1 n2",
    "cheap n2 n1",
    "awake n1 n2",
    "Scheduler Host Filter JsonFilter could not be found. Known are AwakeHostFilter, AllHostsFilter.",
    "CLIMATE_SCHEDULER='no_scheduler': Scheduler no_scheduler is installed, but is not a scheduler",
    "CLIMATE_SCHEDULER='no_module': Scheduler no_module is installed, but it cannot be loaded: "
    "ModuleNotFoundError: No module named 'climate_quieter'",
    "CLIMATE_SCHEDULER_HOST_FILTERS='NotAHostFilter': "
    "Scheduler Host Filter NotAHostFilter is installed, but is not a Filter",
]
"""n2 is the coolest node; the project demo has servers on n3 and n2, and the project other comes to n1."""


def test_each_kind_of_part_of_an_installed_package_places_servers(scratch: str, tmp_path: Path) -> None:
    site, home = install("quiet", tmp_path / "site"), tmp_path / "cloud"
    home.mkdir()
    run = subprocess.run(
        [sys.executable, "-m", "tests.compute.other_package", scratch, str(home)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{site}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.stdout.splitlines() == SAID, run.stderr
