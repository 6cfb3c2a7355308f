"""SSH into servers on leased hosts with the key pair of their boot, which reaches them through the metadata service."""

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from uuid import uuid4

import pytest
import yaml

from climate.compute.servers.interfaces.vif_plugging import netns_of
from climate.sandbox.topology import Lab
from tests.compute.virt.driver_cases import cannot
from tests.netlab import guests
from tests.netlab.guest.build import SSH_CONTAINER, SSH_MACHINE
from tests.netlab.stack import COMPUTE, Region
from tests.netlab.stack_process import region
from tests.system.stack import await_so

pytestmark = [
    pytest.mark.netlab("dnsmasq", "nft", "udhcpc", "ping", "bwrap", "qemu-system-x86_64", "qemu-img", "ssh"),
    pytest.mark.timeout(900),
]

IMAGES = {"container": SSH_CONTAINER, "qemu": SSH_MACHINE}
PATIENCE = 300.0
"""Seconds until a machine without KVM has created the keys of its host."""
OPTIONS = {
    "StrictHostKeyChecking": "no",
    "UserKnownHostsFile": "/dev/null",
    "IdentitiesOnly": "yes",
    "BatchMode": "yes",
    "ConnectTimeout": "20",
}


@dataclass(frozen=True)
class Leased:
    """Two leased hosts, one for each kind of server, and the images and key pairs for their servers."""

    place: Region
    reservation: str
    images: dict[str, str]
    keys: dict[str, Path]

    def boot(self, kind: str, key_name: str, **more: Any) -> str:
        """A server of that kind on its leased host; its id once it is ACTIVE."""
        server = {"name": f"leased-{kind}", "imageRef": self.images[kind], "flavorRef": "1", "key_name": key_name}
        hints = {"reservation": self.reservation}
        body = {"server": {**server, **more}, "OS-SCH-HNT:scheduler_hints": hints}
        answer = self.place.member.ask("POST", f"{COMPUTE}/servers", body)
        assert answer.status_code == 202, answer.text
        made: str = answer.json()["server"]["id"]
        self.place.await_status(made, "ACTIVE")
        return made

    def ssh(self, address: str, key_name: str, *command: str) -> CompletedProcess[str]:
        """A command by SSH from outside the cloud."""
        options = [word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}")]
        words = ("ssh", "-F", "none", "-i", str(self.keys[key_name]), *options, f"root@{address}", *command)
        return guests.run(self.place.lab.outside, *words)

    def console(self, server_id: str) -> str:
        answer = self.place.member.ask("POST", f"{COMPUTE}/servers/{server_id}/action", {"os-getConsoleOutput": {}})
        return str(answer.json()["output"])


@pytest.fixture(scope="module")
def place(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Region]:
    for image in IMAGES.values():
        if not image.exists():
            cannot(f"there is no image in {image}: python -m tests.netlab.guest.build makes it")
    home = tmp_path_factory.mktemp("ssh")
    sizes = {"vcpus": 4, "memory_mb": 8192, "local_gb": 80}
    hosts = zip(("gpu-1", "gpu-2"), IMAGES, lab.computes, strict=True)
    nodes = [{"name": name, "driver": kind, "netns": host, **sizes} for name, kind, host in hosts]
    (home / "nodes.yaml").write_text(yaml.safe_dump(nodes))
    with region(lab, home, "flat_dhcp") as one:
        yield one


@pytest.fixture(scope="module")
def leased(place: Region, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Leased]:
    lease = place.lease("ssh", hosts=2)
    place.await_lease(lease["id"], "ACTIVE")
    images = {kind: _uploaded(place, kind) for kind in IMAGES}
    folder = tmp_path_factory.mktemp("keys")
    keys = {name: _key_pair(place, name, folder / name) for name in ("right", "wrong")}
    yield Leased(place, lease["reservations"][0]["id"], images, keys)
    place.end(lease["id"])


def _uploaded(place: Region, kind: str) -> str:
    image_id = str(uuid4())
    formats = {"disk_format": "raw", "container_format": "bare", "hypervisor_type": kind}
    body = {"id": image_id, "name": f"ssh-{kind}", "visibility": "private", **formats}
    assert place.member.ask("POST", "/image/v2/images", body).status_code == 201
    headers = {"X-Auth-Token": place.member.sign_in(), "Content-Type": "application/octet-stream"}
    content = IMAGES[kind].read_bytes()
    sent = place.member.http.put(f"/image/v2/images/{image_id}/file", content=content, headers=headers)
    assert sent.status_code == 204, sent.text
    return image_id


def _key_pair(place: Region, name: str, file: Path) -> Path:
    answer = place.member.ask("POST", f"{COMPUTE}/os-keypairs", {"keypair": {"name": name}})
    assert answer.status_code in (200, 201), answer.text
    file.touch(mode=0o600)
    file.write_text(answer.json()["keypair"]["private_key"])
    return file


@pytest.mark.parametrize("kind", IMAGES)
def test_a_server_is_entered_with_the_key_pair_of_its_boot_and_with_no_other(leased: Leased, kind: str) -> None:
    place = leased.place
    server_id = leased.boot(kind, "right")
    try:
        address = place.floating(server_id)["floating_ip_address"]

        def entered() -> bool:
            return leased.ssh(address, "right", "true").returncode == 0

        try:
            await_so(entered, PATIENCE, f"an SSH login into {address}")
        except AssertionError:
            print(leased.console(server_id), leased.ssh(address, "right", "true").stderr)
            raise
        said = leased.ssh(address, "right", "hostname")
        assert said.stdout == f"leased-{kind}\n", said.stderr
        refused = leased.ssh(address, "wrong", "hostname")
        assert (refused.returncode, refused.stdout) == (255, "")
        assert "Permission denied (publickey)" in refused.stderr
        fetched = leased.ssh(address, "right", "wget -q -O - http://169.254.169.254/latest/meta-data/public-ipv4")
        assert fetched.stdout == address
    finally:
        place.delete(server_id)


def test_a_container_reads_its_key_and_its_user_data_from_its_config_drive(leased: Leased) -> None:
    place = leased.place
    user_data = base64.b64encode(b"#!/bin/sh\necho carried").decode()
    server_id = leased.boot("container", "right", user_data=user_data)
    try:
        await_so(lambda: "ssh: keys that may enter: 1" in leased.console(server_id), PATIENCE, "an authorized key")
        address = place.floating(server_id)["floating_ip_address"]
        command = "sh /run/climate/config/openstack/latest/user_data"
        await_so(lambda: leased.ssh(address, "right", "true").returncode == 0, PATIENCE, "an SSH login")
        assert leased.ssh(address, "right", command).stdout == "carried\n"
    finally:
        place.delete(server_id)


def test_the_service_knows_a_server_by_its_address_and_nobody_else(leased: Leased) -> None:
    """Neither a forged header nor another source address yields the metadata of a server."""
    place = leased.place
    server_id = leased.boot("container", "right")
    try:
        await_so(lambda: place.configured(server_id), PATIENCE, "the address of the server")
        url, inside = "http://169.254.169.254/latest/meta-data/public-keys", netns_of(server_id)
        assert guests.run(inside, "busybox", "wget", "-q", "-O", "-", url).stdout == "0=right"
        header = f"X-Forwarded-For: {place.configured(server_id)}"
        for namespace, more in ((inside, ("--header", header)), (place.lab.network, ("--header", header))):
            refused = guests.run(namespace, "busybox", "wget", "-q", "-O", "-", *more, url)
            assert refused.stdout == ""
            assert "403" in refused.stderr
        stranger = guests.run(place.lab.network, "busybox", "wget", "-q", "-O", "-", url)
        assert "404" in stranger.stderr
    finally:
        place.delete(server_id)
