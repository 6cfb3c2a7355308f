"""climate lab: from outside it is climate as always; inside its networks are real, and nothing is left of it."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
import yaml

from climate.cli.operations.lab import furnish
from climate.sandbox.features import ProbeResult

ROOT = Path(__file__).parents[2]

real = pytest.mark.netlab("ip", "veth", "bridge", "nft", "dnsmasq")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def environ(home: Path, **more: str) -> Mapping[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "CLIMATE_HOME": str(home), **more}


def lab(*words: str, **more: object) -> "subprocess.Popen[str]":
    argv = [sys.executable, "-m", "climate", "lab", *words]
    return subprocess.Popen(argv, cwd=ROOT, text=True, **more)  # type: ignore[call-overload, no-any-return]


@contextmanager
def running(home: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A lab that is ready, and where its APIs answer; what it says is in `home`.log."""
    port = free_port()
    said = home.with_suffix(".log")
    with said.open("w") as log, lab("--port", str(port), env=environ(home), stdout=log, stderr=log) as outer:
        try:
            until(lambda: outer.poll() is not None or "climate is ready" in said.read_text())
            assert outer.poll() is None, said.read_text()
            yield outer, f"http://127.0.0.1:{port}"
        finally:
            outer.kill()


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 180
    while not what():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.05)


def below(home: Path) -> list[str]:
    """The processes that have to do with this home."""
    found = []
    for process in psutil.process_iter():
        try:
            if str(home) in " ".join([*process.cmdline(), *process.environ().values()]):
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


@real
@pytest.mark.timeout(400)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_its_apis_are_reached_from_outside_and_nothing_is_left(number: signal.Signals, tmp_path: Path) -> None:
    home = tmp_path / "lab"
    with running(home) as (outer, url):
        with httpx.Client(base_url=url, trust_env=False, timeout=30) as api:
            until(lambda: api.get("/readyz").status_code == 200)
            assert api.get("/identity/v3").json()["version"]["links"][0]["href"] == f"{url}/identity/v3/"
        assert url in (home / "clouds.yaml").read_text()
        links = subprocess.run(["ip", "-oneline", "link"], capture_output=True, text=True, check=True).stdout
        assert "sw" not in [line.split(": ")[1] for line in links.splitlines()]
        outer.send_signal(number)
        outer.wait(120)
    assert outer.returncode == (0 if number == signal.SIGINT else -9)
    until(lambda: not below(home))
    entries = yaml.safe_load((home / "nodes.yaml").read_text())
    assert {entry["netns"] for entry in entries} == {"c1", "c2"}
    assert {entry["driver"] for entry in entries} <= {"container", "process"}


def test_nodes_stay_as_their_owner_wants_them(tmp_path: Path) -> None:
    furnish(tmp_path, ProbeResult())
    furnish(tmp_path, ProbeResult(frozenset({"bwrap"})))
    assert {entry["driver"] for entry in yaml.safe_load((tmp_path / "nodes.yaml").read_text())} == {"process"}


@real
def test_another_command_finds_the_hosts_and_the_settings(tmp_path: Path) -> None:
    script = (
        "ip netns list | cut -d' ' -f1 | sort | xargs; echo $CLIMATE_NETWORK_MANAGER $CLIMATE_NETWORK_NETNS; exit 3"
    )
    with lab("--manager", "vlan", "--", "sh", "-c", script, env=environ(tmp_path), stdout=subprocess.PIPE) as outer:
        assert outer.communicate()[0] == "c1 c2 n1 outside\nvlan n1\n"
    assert outer.returncode == 3


@real
def test_flat_networks_find_the_bridges_that_an_operator_would_have_created(tmp_path: Path) -> None:
    look = ("ip", "-netns", "c2", "-details", "link", "show", "br100")
    with lab("--manager", "flat", "--", *look, env=environ(tmp_path / "home"), stdout=subprocess.PIPE) as one:
        told = one.communicate(timeout=60)[0]
    assert "bridge" in told
    assert one.returncode == 0


@real
def test_a_port_that_is_taken_and_stores_elsewhere_are_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with lab("--port", str(port), env=environ(tmp_path), stderr=subprocess.PIPE) as outer:
            said = outer.communicate()[1]
    assert outer.returncode == 1
    assert f"127.0.0.1 port {port} cannot be used (Address already in use)" in said
    elsewhere = environ(tmp_path, CLIMATE_REDIS_URL="redis://127.0.0.1")
    with lab(env=elsewhere, stderr=subprocess.PIPE) as outer:
        assert "CLIMATE_REDIS_URL is set, and the lab reaches no network but its own" in outer.communicate()[1]
    assert outer.returncode == 1


@real
def test_where_there_can_be_none_it_says_why_and_what_to_do(tmp_path: Path) -> None:
    """As where user namespaces are switched off: no rights of root, and no new one may be made."""
    forbidden = 'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set -all --inh-caps -all "$@"'
    argv = ["unshare", "--user", "--map-root-user", "sh", "-c", forbidden, "sh", sys.executable, "-m", "climate", "lab"]
    refused = subprocess.run(argv, env=environ(tmp_path), cwd=ROOT, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert refused.stderr.startswith("error: a lab is not possible here: user namespaces are disabled: use sudo")
    assert "climate up --demo" in refused.stderr
    assert list(tmp_path.iterdir()) == []
