"""climate zone, against a real zone over HTTP."""

import io
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import structlog
from sqlalchemy import text

from climate import log_setup
from climate.cli import run
from climate.identity import first_start
from tests.cli.conftest import Ran
from tests.compute.zones.conftest import lone, standing
from tests.compute.zones.tree import Tree
from tests.flask_apps import app_of
from tests.identity.identity_factory import Asker, served

__all__ = ["lone", "standing"]

URL = "http://child.example:8000/compute/v2.1"


@dataclass
class Command:
    """The command with the home of a zone that listens."""

    environ: dict[str, str]
    capture: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str, **environ: str) -> Ran:
        code = run(arguments, self.environ | environ)
        said = self.capture.readouterr()
        return Ran(code, said.out, said.err)

    def typed(self, line: str, *arguments: str) -> Ran:
        """Run the command in a process of its own, with a line on its standard input."""
        ran = subprocess.run(
            [sys.executable, "-m", "climate", *arguments],
            env={**self.environ, "PATH": os.environ["PATH"]},
            input=f"{line}\n",
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[2],
            check=False,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)


@pytest.fixture
def zones(lone: Tree, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    deployment = lone["parent"].deployment
    settings = replace(deployment.settings, public_url=f"http://127.0.0.1:{port}")
    (settings.home / "clouds.yaml").unlink(missing_ok=True)
    first_start(deployment.identity, settings, lambda said: None)
    log_setup.configure(level="WARNING", stream=io.StringIO())  # standard output is the command's
    with served(app_of(replace(deployment, settings=settings)), port):
        yield Command({"CLIMATE_HOME": str(settings.home), "HOME": str(tmp_path)}, capsys)
    structlog.reset_defaults()


def test_zone_is_added_shown_changed_and_deleted(lone: Tree, zones: Command) -> None:
    compute = lone["parent"].compute
    added = zones.typed("correct horse", "zone", "add", URL, "--username", "admin", "--weight-scale", "2", "-f", "json")
    assert added.code == 0, added.err
    assert added.data == {"id": 1, "api_url": URL, "weight_offset": 0.0, "weight_scale": 2.0}
    (listed,) = zones("zone", "list", "-f", "json").data
    assert (listed["id"], listed["is_active"], listed["last_seen"]) == (1, True, None)
    changed = zones("zone", "set", "1", "--weight-offset", "5", "-f", "json")
    assert changed.data["weight_offset"] == 5.0
    assert zones("zone", "set", "1", "--password", CLIMATE_ZONE_PASSWORD="battery").code == 0
    with compute.engine.connect() as conn:
        kept = conn.execute(text("SELECT password FROM compute_zones")).scalar_one()
    assert compute.zones.unseal(kept) == "battery"
    assert zones("zone", "show", "1", "-f", "value", "-c", "api_url").out == f"{URL}\n"
    told = [added, zones("zone", "list"), zones("zone", "show", "1")]
    assert not [one for one in told if "horse" in one.out + one.err or "battery" in one.out + one.err]
    assert zones("zone", "delete", "1").code == 0
    assert zones("zone", "list", "-f", "json").data == []


def test_zone_that_builds_wait_for_is_deleted_by_force_only(zones: Command, lone: Tree) -> None:
    assert zones("zone", "add", URL, "--username", "boss", CLIMATE_ZONE_PASSWORD="horse").code == 0
    with lone["parent"].compute.engine.begin() as conn:
        build = "00000000-0000-4000-8000-000000000001"
        counts = "requested, pending, vcpus, ram_mb, request, report"
        conn.execute(
            text(f"""INSERT INTO compute_zone_builds (id, reservation_id, project_id, user_id, {counts})
                 VALUES ('{build}', 'r-1', 'p', 'u', 1, 1, 1, 512, '{{}}', '{{}}')""")
        )
        columns = "build_id, launch_index, zone_id, state"
        item = f"INSERT INTO compute_zone_build_items ({columns}) VALUES ('{build}', 0, 1, 'sent')"
        conn.execute(text(item))
    refused = zones("zone", "delete", "1")
    assert refused.code not in (0, 2)
    assert "1 build waits for its answer" in refused.err
    assert zones("zone", "delete", "1", "--force").code == 0
    assert zones("zone", "list", "-f", "json").data == []


def test_info_shows_this_zone(zones: Command) -> None:
    assert zones("zone", "info", "-f", "json").data == {"name": "parent", "hypervisor": "memory"}


def test_unknown_zones_and_empty_changes_are_refused(zones: Command) -> None:
    assert zones("zone", "show", "nowhere").code == 3
    assert zones("zone", "set", "1").code == 2


def test_password_is_no_argument(zones: Command) -> None:
    assert zones("zone", "add", URL, "--username", "u", "--password", "p").code == 2
    assert zones("zone", "set", "1", "--password", "p").code == 2


def test_doctor_names_children_that_do_not_answer(lone: Tree, zones: Command) -> None:
    for name, sql in (("gone", "false, 3, 'no answer'"), ("well", "true, 0, NULL")):
        zones("zone", "add", f"http://{name}", "--username", "u", CLIMATE_ZONE_PASSWORD="p")
        with lone["parent"].compute.engine.begin() as conn:
            where = f"WHERE api_url = 'http://{name}'"
            conn.execute(text(f"UPDATE compute_zones SET (is_active, attempts, last_error) = ({sql}) {where}"))
    found = {one["check"]: one for one in zones("doctor", "-f", "json").data if one["check"].startswith("zone ")}
    assert {check: one["is"] for check, one in found.items()} == {"zone 1": "BAD", "zone 2": "good"}
    assert "no answer" in found["zone 1"]["says"]


def test_metrics_tell_of_each_child(lone: Tree) -> None:
    parent = lone["parent"]
    asker = Asker(parent.app, parent.token("admin"))
    assert "climate_zone" not in asker.ask("GET", "/metrics").get_data(as_text=True)
    parent.ask("POST", "/zones", {"zone": {"api_url": "http://child", "username": "u", "password": "p"}})
    with parent.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_zones SET name = 'c', attempts = 2, last_seen = now()"))
    told = asker.ask("GET", "/metrics").get_data(as_text=True)
    assert 'climate_zone_active{name="c",zone="1"} 1.0' in told
    assert 'climate_zone_failed_polls{name="c",zone="1"} 2.0' in told
    assert "climate_zone_last_seen_seconds{" in told
