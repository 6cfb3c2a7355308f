"""Folders of guests: the record of a process that has ended at once."""

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from climate.compute.errors import VirtError
from climate.compute.virt.guest_folders import Homes


@pytest.mark.parametrize(("log", "reason"), [("qemu.log", "Invalid SMP CPUs 10000"), ("console", "login:")])
def test_a_process_that_has_ended_at_once_is_refused_with_its_own_last_words(
    tmp_path: Path, log: str, reason: str
) -> None:
    homes, server_id = Homes(tmp_path), str(uuid4())
    home = homes.prepare(server_id)
    (home / "qemu.log").write_text("starting\nInvalid SMP CPUs 10000\n")
    (home / "console").write_text("welcome\nlogin:\n")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with pytest.raises(VirtError, match=f"exited immediately: {reason}$"):
        homes.started(server_id, ended.pid, log)
