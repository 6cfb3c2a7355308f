"""The VPN of a project from end to end: its users get into its network from outside, and nobody else does."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest
import yaml

from climate.compute.vpn import authority, openvpn
from climate.sandbox.topology import Lab
from tests.compute.virt.driver_cases import cannot
from tests.netlab.guest.build import CLOUDPIPE
from tests.netlab.stack import COMPUTE, Region
from tests.netlab.stack_process import region
from tests.netlab.vpn import CONNECTED, PATIENCE, client
from tests.system.api_client import Api
from tests.system.stack import await_so

pytestmark = [
    pytest.mark.netlab("dnsmasq", "nft", "udhcpc", "ping", "bwrap", "openvpn", "qemu-system-x86_64", "qemu-img"),
    pytest.mark.timeout(600),
]

PIPES = f"{COMPUTE}/os-cloudpipe"
IMAGE = str(uuid4())
CLIENTS = 5
"""Addresses kept for VPN clients in each network: .250 to .254 of a /24."""


@pytest.fixture(scope="module")
def place(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Region]:
    if not CLOUDPIPE.exists():
        cannot(f"there is no image of cloudpipes in {CLOUDPIPE}: python -m tests.netlab.guest.build makes it")
    home = tmp_path_factory.mktemp("cloudpipe")
    _write_nodes(home, lab)
    settings = {
        "CLIMATE_VPN_IP": str(lab.public.ip),
        "CLIMATE_VPN_CLIENTS": str(CLIENTS),
        "CLIMATE_VPN_IMAGE_ID": IMAGE,
        "CLIMATE_VPN_FLAVOR": "m1.tiny",
    }
    with region(lab, home, "vlan", settings) as one:
        _upload(one.admin)
        yield one


def _write_nodes(home: Path, lab: Lab) -> None:
    """Containers on one host and virtual machines on another."""
    sizes = {"vcpus": 4, "memory_mb": 8192, "local_gb": 80}
    kinds = {"std-1": ("container", lab.computes[0]), "std-2": ("qemu", lab.computes[1])}
    nodes = [{"name": name, "driver": kind, "netns": host, **sizes} for name, (kind, host) in kinds.items()]
    home.mkdir(parents=True, exist_ok=True)
    (home / "nodes.yaml").write_text(yaml.safe_dump(nodes))


def _upload(admin: Api) -> None:
    formats = {"disk_format": "raw", "container_format": "bare", "hypervisor_type": "qemu"}
    body = {"id": IMAGE, "name": "cloudpipe", "visibility": "private", **formats}
    assert admin.ask("POST", "/image/v2/images", body).status_code == 201
    headers = {"X-Auth-Token": admin.sign_in(), "Content-Type": "application/octet-stream"}
    sent = admin.http.put(f"/image/v2/images/{IMAGE}/file", content=CLOUDPIPE.read_bytes(), headers=headers)
    assert sent.status_code == 204, sent.text


@pytest.fixture(scope="module")
def pipe(place: Region) -> Iterator[dict[str, Any]]:
    """The cloudpipe of the demo project, running."""
    project = _project(place.member)
    assert place.admin.ask("POST", PIPES, {"cloudpipe": {"project_id": project}}).status_code == 200
    yield _running(place, project)
    assert place.admin.ask("DELETE", f"{PIPES}/{project}?authority=true").status_code == 202
    await_so(lambda: place.admin.read(PIPES)["cloudpipes"] == [], 90, "the deletion of a cloudpipe")


def _running(place: Region, project: str) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        rows = [one for one in place.admin.read(PIPES)["cloudpipes"] if one["project_id"] == project]
        return rows[0] if rows and rows[0]["state"] == "running" else None

    one = await_so(found, 120, "a running cloudpipe")
    assert one is not None
    return one


def _project(who: Api) -> str:
    who.sign_in()
    return who.project_id


def _issued(who: Api, name: str) -> dict[str, Any]:
    answer = who.ask("POST", f"{PIPES}/{_project(who)}/certificates", {"certificate": {"name": name}})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()["certificate"]
    return made


def _console(place: Region, server_id: str) -> str:
    answer = place.admin.ask("POST", f"{COMPUTE}/servers/{server_id}/action", {"os-getConsoleOutput": {}})
    return str(answer.json()["output"])


def _refused(place: Region, pipe: dict[str, Any], config: str, folder: Path, why: str) -> None:
    """The cloudpipe refuses a client, and says why on its console; the client never gets an address."""
    before = _console(place, pipe["instance_id"]).count(why)
    with client(place.lab.outside, config, folder, "refused") as one:
        await_so(lambda: _console(place, pipe["instance_id"]).count(why) > before, 90, f"{why!r} on the console")
        assert CONNECTED not in one.said
        assert one.addresses() == []


def test_a_user_reaches_the_servers_of_his_project_through_its_cloudpipe(
    place: Region, pipe: dict[str, Any], tmp_path: Path
) -> None:
    made = _issued(place.member, "ada")
    (server,) = place.running("inside")
    try:
        address = place.addresses(server)[0]
        assert not place.reached(address), "only a VPN leads there from outside"
        with client(place.lab.outside, made["config"], tmp_path, "ada") as one:
            one.await_words(CONNECTED)
            assert one.addresses() == [f"{address.rpartition('.')[0]}.250/24"]
            one.await_answer(pipe["internal_ip"])
            one.await_answer(address)
            back = one.addresses()[0].partition("/")[0]
            await_so(lambda: place.reaches(server, back), PATIENCE, f"an answer of {back} to a server")
    except AssertionError:
        print(_console(place, pipe["instance_id"]))
        raise
    finally:
        place.delete(server)


def test_a_connection_outlives_the_compute_service(place: Region, pipe: dict[str, Any], tmp_path: Path) -> None:
    made = _issued(place.member, "kate")
    with client(place.lab.outside, made["config"], tmp_path, "kate") as one:
        one.await_words(CONNECTED)
        killed = [*place.stack.find("worker child"), *place.stack.find("worker")]
        assert killed
        for process in killed:
            process.kill()
        psutil.wait_procs(killed, 30)
        one.await_answer(pipe["internal_ip"])
        await_so(lambda: place.stack.find("worker child"), 90, "another compute service")
        (server,) = place.running("afterwards")
        try:
            one.await_answer(place.addresses(server)[0])
        finally:
            place.delete(server)
        assert one.said.count(CONNECTED) == 1
    assert _console(place, pipe["instance_id"]).count("machine: starts") == 1


def test_a_certificate_of_another_authority_is_refused(place: Region, pipe: dict[str, Any], tmp_path: Path) -> None:
    """Even of one that is called as the project's own."""
    made, now = _issued(place.member, "eve"), datetime.now(UTC)
    other = authority.create(_project(place.member), now)
    forged = openvpn.client_file(
        made["authority"], authority.sign_client(other, "eve", now), (pipe["public_ip"], pipe["public_port"])
    )
    _refused(place, pipe, forged, tmp_path, "VERIFY ERROR: depth=0")


def test_a_revoked_certificate_is_refused_and_others_are_not(
    place: Region, pipe: dict[str, Any], tmp_path: Path
) -> None:
    good, bad = _issued(place.member, "good"), _issued(place.member, "bad")
    with client(place.lab.outside, bad["config"], tmp_path, "bad") as one:
        one.await_words(CONNECTED)
    path = f"{PIPES}/{_project(place.member)}/certificates/{bad['serial']}"
    assert place.member.ask("DELETE", path).status_code == 202
    started = "machine: starts"
    await_so(lambda: _console(place, pipe["instance_id"]).count(started) > 1, 90, "a new start of the cloudpipe")
    with client(place.lab.outside, good["config"], tmp_path, "good") as one:
        one.await_words(CONNECTED)
        one.await_answer(pipe["internal_ip"])
    _refused(place, pipe, bad["config"], tmp_path, "certificate revoked")
