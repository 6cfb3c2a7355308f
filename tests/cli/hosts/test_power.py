"""Power from the command line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

HOST = "/reservation/v1/os-hosts/1/power"


def test_what_can_be_switched_is_listed_and_shown(cli: Cli) -> None:
    assert cli("power", "list", "-f", "value", "-c", "name", "-c", "driver").out == "h1 memory\n"
    assert cli("host", "power", "show", "1", "-f", "json").data["name"] == "h1"


def test_secrets_are_read_and_not_repeated(cli: Cli, wire: Wire, environ: dict[str, str]) -> None:
    told = ("--setting", "username=root", "--json", '{"verify": false}', "--secret", "password", "--watts", "180")
    command = [sys.executable, "-m", "climate", "host", "power", "set", "1", "--driver", "redfish", *told, "--dry-run"]
    ran = subprocess.run(
        command,
        env={**environ, "PATH": os.environ["PATH"]},
        input="correct horse\n",
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    asked = wire.sent("PUT", HOST)
    assert asked.body == {
        "driver": "redfish",
        "settings": {"username": "root", "verify": False, "password": "correct horse"},
        "watts": 180,
    }
    assert asked.query == {"dry_run": "true"}
    assert "correct horse" not in ran.stderr + ran.stdout
    assert cli("host", "power", "set", "1", "--driver", "redfish", "--json", "[]").code == 2


@pytest.mark.parametrize(
    ("arguments", "method", "path", "query"),
    [
        (("on", "1"), "POST", "/on", {}),
        (("on", "1", "--force"), "POST", "/on", {"force": "true"}),
        (("off", "1", "--hard", "--dry-run"), "POST", "/off", {"hard": "true", "dry_run": "true"}),
        (("off", "1", "--force"), "POST", "/off", {"force": "true"}),
        (("clear", "1", "--force"), "DELETE", "", {"force": "true"}),
    ],
    ids=range(5),
)
def test_by_hand(
    cli: Cli, wire: Wire, arguments: tuple[str, ...], method: str, path: str, query: dict[str, str]
) -> None:
    assert cli("host", "power", *arguments).code == 0
    assert wire.sent(method, HOST + path).query == query


def test_the_report_is_a_sum_or_a_list(cli: Cli, wire: Wire) -> None:
    whole = cli("power", "report", "--from", "-7d", "--to", "now", "-f", "csv")
    assert whole.out == "hours_off,kwh\n8.0,1.2\n"
    query = wire.sent("GET", "/reservation/v1/power/report").query
    assert (query["from"][:10], query["to"][:10]) == ("2029-12-25", "2030-01-01")
    assert cli("power", "report", "--hosts", "-f", "value", "-c", "name", "--sort", "hours_off").out == "h2\nh1\n"
    assert len(cli("power", "report", "-f", "json").data["hosts"]) == 2
