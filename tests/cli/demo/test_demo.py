"""The demo's own machinery: it must never say that something was verified which was not, and leave nothing behind."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from climate.cli.connection.client import Client
from climate.cli.connection.clouds import entry, find
from climate.cli.demo import host_steps, storage_steps
from climate.cli.demo.actors import Play, Unseen, require
from climate.cli.demo.demo import ENDING, STEPS, page_of, perform
from climate.cli.demo.screen import Screen
from climate.cli.demo.stack import Stack, running, surroundings
from climate.cli.errors import Failure
from climate.service.power import power_saving
from climate.settings import Settings
from tests.cli.fake_server import PASSWORD, Wire

PROGRAM = """
import http.server, os, pathlib, sys
home = pathlib.Path(os.environ["CLIMATE_HOME"])
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'{"checks": {"all": "ok"}}')
server = http.server.HTTPServer(("127.0.0.1", int(os.environ["CLIMATE_PORT"])), Ready)
(home / "pid").write_text(str(os.getpid()))
server.serve_forever()
"""
UP = (sys.executable, "-c", PROGRAM)
OUTSIDE = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from climate.cli.demo.stack import running
with running(dict(os.environ), lambda spent: None, {UP!r}):
    print("running", flush=True)
    signal.pause()
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return surroundings({"CLIMATE_HOME": str(tmp_path), "PATH": os.environ["PATH"]})


@pytest.fixture
def play(wire: Wire) -> Play:
    auth = {"auth_url": f"{wire.url}/identity/v3", "username": "one", "password": PASSWORD, "project_name": "one"}
    client = Client(entry({"auth": auth}, "test"))
    return Play(Stack({}, wire.url, {}), quiet(), client, client, image="i1", flavor="1")


def quiet() -> Screen:
    return Screen(Console(file=io.StringIO(), width=200, force_terminal=False))


def said(screen: Screen) -> str:
    file = screen.console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def pid_of(environ: dict[str, str]) -> int:
    return int(Path(environ["CLIMATE_HOME"], "pid").read_text())


def test_the_demo_has_a_place_of_its_own_unless_one_is_given(tmp_path: Path) -> None:
    own = surroundings({})
    assert own["CLIMATE_HOME"].endswith("/var/demo")
    assert int(own["CLIMATE_PORT"]) > 0
    given = surroundings(
        {"CLIMATE_HOME": str(tmp_path), "CLIMATE_PORT": "8123", "CLIMATE_DATABASE_URL": "postgresql:///x"}
    )
    assert (given["CLIMATE_HOME"], given["CLIMATE_PORT"]) == (str(tmp_path), "8123")
    assert given["CLIMATE_DATABASE_URL"] == "postgresql:///x"


def test_the_demo_never_plays_on_a_cloud_that_the_user_has_named(tmp_path: Path) -> None:
    mine, own = tmp_path / "mine.yaml", tmp_path / "home"
    own.mkdir()
    for path, url in ((mine, "http://mine"), (own / "clouds.yaml", "http://own")):
        auth = {"auth_url": url, "username": "admin", "password": PASSWORD}
        path.write_text(json.dumps({"clouds": {"climate": {"auth": auth}}}))
    named = {"OS_CLIENT_CONFIG_FILE": str(mine), "OS_CLOUD": "climate", "OS_AUTH_URL": "http://mine"}
    environ = surroundings({**named, "CLIMATE_HOME": str(own)})
    assert find("climate", environ, own).auth_url == "http://own"


def test_the_settings_that_the_steps_count_on_are_not_the_users(tmp_path: Path) -> None:
    environ = surroundings({"CLIMATE_HOME": str(tmp_path), "CLIMATE_IDLE_OFF_AFTER": "86400"})
    settings = Settings.from_env(environ)
    power_saving.check(settings)
    switches = timedelta(seconds=settings.power_on_lead + settings.service_down_seconds)
    assert 0 < settings.idle_off_after <= 5
    assert switches < host_steps.AHEAD, "a host that was just switched off is not called up in time"
    assert timedelta(seconds=settings.power_on_lead + settings.least_off) < host_steps.AHEAD, "it would stay on"


def test_the_stack_runs_for_as_long_as_the_block(environ: dict[str, str]) -> None:
    with running(environ, lambda spent: None, UP) as stack:
        assert stack.readiness == {"checks": {"all": "ok"}}
        pid = pid_of(environ)
        assert alive(pid)
    assert not alive(pid)


def test_the_stack_is_ended_when_a_step_breaks_down(environ: dict[str, str]) -> None:
    with pytest.raises(ZeroDivisionError), running(environ, lambda spent: None, UP):
        raise ZeroDivisionError
    assert not alive(pid_of(environ))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_stack_is_ended_when_the_demo_is_asked_to_end(environ: dict[str, str], number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", OUTSIDE], env=environ, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        assert demo.stdout.readline() == "running\n"
        pid = pid_of(environ)
        demo.send_signal(number)
        assert demo.wait(60) != 0
    assert not alive(pid)


def test_a_stack_that_ends_at_once_is_reported_with_its_last_words(environ: dict[str, str]) -> None:
    words = (sys.executable, "-c", "print('first'); print('the port is taken'); raise SystemExit(1)")
    with pytest.raises(Failure, match="the port is taken"), running(environ, lambda spent: None, words):
        pass


def test_a_port_of_its_own_is_free(environ: dict[str, str]) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", int(environ["CLIMATE_PORT"])))


def seen(play: Play) -> str:
    """Something is seen"""
    return "it"


def unseen(play: Play) -> str:
    """Something is not seen"""
    raise Unseen("it was elsewhere")


def refused(play: Play) -> str:
    """Something is refused"""
    raise Failure("not for you")


def malformed(play: Play) -> str:
    """Something has another form"""
    return str(play.lease["id"])


def test_a_verified_step_has_a_check_mark_and_says_what_was_seen(play: Play) -> None:
    assert perform(play, (seen,)) == 1
    assert "✓ Something is seen: it" in said(play.screen)


@pytest.mark.parametrize("step", [unseen, refused, malformed])
def test_the_demo_stops_at_a_step_that_was_not_verified(play: Play, step: Callable[[Play], str]) -> None:
    assert perform(play, (seen, step, seen)) == 1
    assert said(play.screen).count("✓") == 1
    assert f"✗ {step.__doc__}" in said(play.screen)


def test_every_step_has_a_title_of_one_line() -> None:
    titles = [step.__doc__ or "" for step in STEPS]
    assert all(title and "\n" not in title for title in titles)
    assert len(set(titles)) == len(titles)


def test_what_never_comes_is_unseen(play: Play) -> None:
    with pytest.raises(Unseen, match="the moon: still gone"):
        play.until("the moon", lambda: None, lambda thing: thing is not None, 0.1)


def test_a_boot_that_works_is_not_taken_for_a_refusal(play: Play, wire: Wire) -> None:
    with pytest.raises(Unseen, match="became ACTIVE"):
        play.refusal(play.member, "intruder", {})
    assert [asked.method for asked in wire.asked][-1] == "DELETE"


@pytest.mark.parametrize(
    ("status", "counts"), [(403, True), (404, True), (409, True), (400, False), (500, False), (401, False)]
)
def test_a_refusal_is_an_answer_that_refuses_and_not_one_that_broke(
    play: Play, wire: Wire, status: int, counts: bool
) -> None:
    assert play.member.token.id
    answer: tuple[int, Any, dict[str, str]] = (status, {"forbidden": {"code": status, "message": "no"}}, {})
    wire.answers = [answer, answer, answer]
    if counts:
        assert play.refusal(play.member, "intruder", {}) == f"{status} no"
    else:
        with pytest.raises(Failure):
            play.refusal(play.member, "intruder", {})


def test_what_is_required_is_said_when_it_is_not_so() -> None:
    require(True, "never said")
    with pytest.raises(Unseen, match="it is ERROR"):
        require(False, "it is ERROR")


def test_progress_without_a_terminal_is_a_line_per_change() -> None:
    screen = quiet()
    for state in ("PENDING", "PENDING", "STARTING", "ACTIVE"):
        screen.waiting("the lease", state, 1.0)
    assert said(screen).splitlines() == [
        "  … waiting for the lease: PENDING",
        "  … waiting for the lease: STARTING",
        "  … waiting for the lease: ACTIVE",
    ]


def host_of(wire: Wire, play: Play) -> list[tuple[int, Any, dict[str, str]]]:
    """A play with a lease that has begun, for the host that was off; the answers to its looks."""
    lease = wire.add_lease("night", status="ACTIVE", events=[{"id": "e1", "event_type": "start_lease", "time": START}])
    play.night, play.hosts = lease, {host_steps.HOST: {"id": "7"}}
    assert play.member.token.id
    story = [{"kind": "EventFinished", "at": "2030-01-01T12:00:01.000000", "body": {"event_id": "e1"}}]
    return [(200, {"lease": lease}, {}), (200, {"history": story}, {})]


START = "2030-01-01T12:00:00.000000"
SWITCHED = {"kind": "HostSwitched", "at": "2030-01-01T11:59:55.000000", "body": {"on": True}}


def test_a_host_that_was_up_before_the_start_is_in_time(play: Play, wire: Wire) -> None:
    wire.answers = [*host_of(wire, play), (200, {"history": [SWITCHED]}, {})]
    assert host_steps.host_is_up_in_time(play) == "gpu-1 was up 5.0 s before the start, and was lent 1.00 s after it"


@pytest.mark.parametrize(
    ("story", "why"),
    [
        ([], "does not tell that it came up"),
        ([{**SWITCHED, "body": {"on": False}}], "does not tell that it came up"),
        ([{**SWITCHED, "at": "2030-01-01T12:00:00.500000"}], "0.5 s after the start"),
    ],
)
def test_a_host_that_was_not_up_before_the_start_is_not_in_time(
    play: Play, wire: Wire, story: list[dict[str, Any]], why: str
) -> None:
    wire.answers = [*host_of(wire, play), (200, {"history": story}, {})]
    with pytest.raises(Unseen, match=why):
        host_steps.host_is_up_in_time(play)


@pytest.mark.parametrize(("off", "kwh"), [(0, 0.0), (0.01, None)])
def test_nothing_saved_is_not_reported_as_saved(play: Play, wire: Wire, off: float, kwh: float | None) -> None:
    host_of(wire, play)
    told = {"hours_off": off, "kwh": kwh, "hosts": [{"id": "7", "name": host_steps.HOST, "hours_off": off}]}
    wire.answers = [(200, {"report": told}, {})]
    with pytest.raises(Unseen, match="the report says"):
        host_steps.hours_are_told(play)
    assert [asked.method for asked in wire.asked][-1] == "GET"


def storage_ended(wire: Wire, play: Play) -> list[tuple[int, Any, dict[str, str]]]:
    """A play with a lease of storage that was ended; the answers to its looks until then."""
    events = [{"id": "e1", "event_type": "end_lease", "time": START}]
    lease = wire.add_lease("storage", status="TERMINATED", events=events, reservations=[{"id": "r1"}])
    play.storage, play.server = lease, "s1"
    assert play.member.token.id
    story = [{"kind": "EventFinished", "at": "2030-01-01T12:00:01.000000", "body": {"event_id": "e1"}}]
    return [(200, {"lease": lease}, {}), (200, {"lease": lease}, {}), (200, {"history": story}, {})]


VOLUME = {"id": "v1", "size": 1, "status": "in-use", "metadata": {"reservation_id": "r1"}}


@pytest.mark.parametrize(
    ("volumes", "attached", "status", "why"),
    [
        ([VOLUME], [], "ACTIVE", "the volume is there still"),
        ([], [{"volumeId": "v1"}], "ACTIVE", "the server has"),
        ([], [], "SHUTOFF", "does not run any more"),
    ],
)
def test_storage_that_is_not_gone_with_its_lease_is_seen(
    play: Play, wire: Wire, volumes: list[Any], attached: list[Any], status: str, why: str
) -> None:
    wire.answers = [
        *storage_ended(wire, play),
        (200, {"volumes": volumes}, {}),
        *([] if volumes else [(200, {"volumeAttachments": attached}, {})]),
        *([] if volumes or attached else [(200, {"server": {"id": "s1", "status": status}}, {})]),
    ]
    with pytest.raises(Unseen, match=why):
        storage_steps.storage_goes(play)


def test_the_ending_names_the_logs_the_data_and_the_page_of_the_lease(play: Play) -> None:
    assert "/a/home/logs" in "\n".join(ENDING).format(home="/a/home")
    environ = {"CLIMATE_HOME": "/a/my home", "CLIMATE_PORT": "8791"}
    play.stack, play.lease = Stack(environ, "http://127.0.0.1:8791/", {}), {"id": "l1"}
    told = "\n".join(page_of(play))
    assert "CLIMATE_HOME='/a/my home' climate up --demo --port 8791" in told
    assert "http://127.0.0.1:8791/ui/leases/l1#history" in told
