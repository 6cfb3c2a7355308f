"""The end of the start of `climate up`: what to type next, and no chatter of the stores."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from climate.embedded import postgres, valkey
from climate.runner.next_steps import in_a_browser, next_steps

BIN = Path(sys.executable).parent


@pytest.mark.parametrize(("demo", "cloud"), [(True, "climate-demo"), (False, "climate")])
def test_the_commands_work_in_a_shell(tmp_path: Path, demo: bool, cloud: str) -> None:
    home = tmp_path / "a home"
    home.mkdir()
    (home / "clouds.yaml").touch()
    first, *commands, last = next_steps(home, {"PATH": "/usr/bin:/bin"}, demo=demo)
    assert (first, last) == ("Next, in another terminal:", "Ctrl-C stops climate.")
    *before, command = commands
    script = "\n".join([*before, 'printf "%s %s\\n" "$OS_CLOUD" "$OS_CLIENT_CONFIG_FILE"', "command -v climate"])
    plain = {"PATH": "/usr/bin:/bin"}
    ran = subprocess.run(["/bin/sh", "-c", script], env=plain, capture_output=True, text=True, check=True)
    assert ran.stdout == f"{cloud} {home}/clouds.yaml\n{BIN}/climate\n"
    help_of = [str(BIN / "climate"), *shlex.split(command)[1:], "--help"]
    subprocess.run(help_of, env=plain, stdout=subprocess.DEVNULL, check=True)


def test_a_climate_on_the_path_needs_no_activation(tmp_path: Path) -> None:
    (tmp_path / "clouds.yaml").touch()
    assert not [line for line in next_steps(tmp_path, {"PATH": str(BIN)}, demo=True) if "activate" in line]


def test_without_clouds_yaml_there_is_nothing_to_type(tmp_path: Path) -> None:
    assert list(next_steps(tmp_path, {}, demo=False)) == []


def test_address_of_the_pages_names_the_password_where_there_is_one(tmp_path: Path) -> None:
    assert in_a_browser(tmp_path, "http://here:8000", demo=True) == "In a browser: http://here:8000/"
    (tmp_path / "demo-password").touch()
    line = in_a_browser(tmp_path, "http://here:8000", demo=True)
    assert line == f"In a browser: http://here:8000/ (user demo, password in {tmp_path}/demo-password)"


VALKEY, POSTGRES = "45:M 23 Nov 2026 23:41:09.412 # ", "2026-11-23 23:41:09.412 UTC [44] "


@pytest.mark.parametrize(
    ("chatter", "line", "hidden"),
    [
        (valkey.CHATTER, f"{VALKEY}oO0OoO0OoO0Oo Redis is starting oO0OoO0OoO0Oo", True),
        (valkey.CHATTER, f"{VALKEY}Redis version=7.0.15, bits=64, pid=45, just started", True),
        (valkey.CHATTER, f"{VALKEY}Server initialized", True),
        (valkey.CHATTER, f"{VALKEY}WARNING Memory overcommit must be enabled! Without it, a save may fail", True),
        (valkey.CHATTER, "45:signal-handler (1795477571) Received SIGTERM scheduling shutdown...", True),
        (valkey.CHATTER, f"{VALKEY}Bad file format reading the append only file", False),
        (valkey.CHATTER, f"{VALKEY}Failed opening Unix socket: bind: Permission denied", False),
        (postgres.CHATTER, f"{POSTGRES}LOG:  starting PostgreSQL 15.20 on x86_64", True),
        (postgres.CHATTER, f"{POSTGRES}LOG:  database system is ready to accept connections", True),
        (postgres.CHATTER, f"{POSTGRES}LOG:  aborting any active transactions", True),
        (postgres.CHATTER, f"{POSTGRES}LOG:  database system was interrupted; last known up", False),
        (postgres.CHATTER, f"{POSTGRES}FATAL:  could not create shared memory segment", False),
        (postgres.CHATTER, f"{POSTGRES}PANIC:  could not write to file: No space left on device", False),
    ],
)
def test_chatter_of_stores(chatter: re.Pattern[str], line: str, hidden: bool) -> None:
    assert bool(chatter.search(line)) is hidden
