"""A full disk is called a full disk, and ends no process."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from api.auth import public
from tests import flask_apps
from tests.identity.identity_factory import Place

ROOT = Path(__file__).parents[2]

COUNTING = """
import sys
from pathlib import Path
from api.ops.request_counters import Tally

folder = Path(sys.argv[1])
tally = Tally(folder / "figures")
for number in range(1500):
    tally.count(f"/route-of-some-length/{number}", "GET", 200, 0.1)
print("alive", sum(len(metric.samples) for metric in tally.collect()) > 0)
"""


def in_small_space(folder: Path, size: str, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program over a file system of so many bytes at `folder`, which is gone afterwards."""
    folder.mkdir()
    mounted = 'mount -t tmpfs -o size="$1" none "$2" && shift 2 && exec "$@"'
    words = [sys.executable, "-c", program, str(folder)]
    argv = ["unshare", "-rm", "sh", "-c", mounted, "sh", size, str(folder), *words]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def small_space(tmp_path_factory: pytest.TempPathFactory) -> None:
    probe = in_small_space(tmp_path_factory.mktemp("probe") / "small", "64k", "print('there')")
    if probe.stdout != "there\n":
        pytest.skip(f"no file system can be mounted here: {probe.stderr[-200:]}")


@pytest.mark.parametrize("size", ["16k", "100k", "400k"])
def test_a_disk_without_room_for_figures_ends_no_web_process(tmp_path: Path, small_space: None, size: str) -> None:
    ran = in_small_space(tmp_path / "small", size, COUNTING)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.splitlines()[-1].startswith("alive")


def test_a_request_that_finds_the_disk_of_its_process_full_is_507(here: Place) -> None:
    app = flask_apps.app_of(here)

    @public
    def fill() -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    app.add_url_rule("/reservation/v1/fill", "fill", fill)
    answer = app.test_client().get("/reservation/v1/fill")
    assert answer.status_code == 507
    assert answer.json is not None
    assert answer.json["error_message"].startswith("The disk of the web process is full; nothing was changed.")
