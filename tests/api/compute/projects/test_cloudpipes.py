"""Cloudpipes over HTTP: made by administrators, used by the project's own people, unseen by others."""

from dataclasses import replace
from ipaddress import IPv4Address
from typing import Any

import pytest
from sqlalchemy import text

from api.request_context import DEPLOYMENT
from climate.compute.network.network_options import NetworkOptions
from climate.compute.nodes.services import IMAGE_ID
from tests.api.compute.api_clients import Person, World, done, message
from tests.compute import network_factory

C = "/compute/v2.1"
PIPES = f"{C}/os-cloudpipe"
PIPE, CERTIFICATES = f"{PIPES}/project", f"{PIPES}/project/certificates"
OPTIONS = NetworkOptions(
    manager="vlan", vpn_image=IMAGE_ID, vpn_flavor="1", vpn_clients=4, vpn_address=IPv4Address("203.0.113.1")
)


@pytest.fixture(autouse=True)
def ready(there: World) -> None:
    """The project of `member` has a network with a VLAN, and may have a cloudpipe."""
    deployment = there.app.extensions[DEPLOYMENT]
    deployment.compute = replace(there.here.compute, network=OPTIONS)
    with there.here.compute.engine.begin() as conn:
        made = network_factory.network(conn, "team", "10.30.0.0/24", "vlan", OPTIONS)
        words = "UPDATE compute_networks SET project_id = 'project', vpn_public_address = '203.0.113.1' WHERE id = :id"
        conn.execute(text(words), {"id": made})


@pytest.fixture
def pipe(there: World, admin: Person) -> str:
    """The id of the server that is the project's cloudpipe."""
    made = str(done(admin("POST", PIPES, {"cloudpipe": {"project_id": "project"}}))["instance_id"])
    there.settle()
    return made


def issued(who: Person, name: str = "ada") -> dict[str, Any]:
    return dict(done(who("POST", CERTIFICATES, {"certificate": {"name": name}}), 201)["certificate"])


def test_an_administrator_makes_and_lists_and_deletes_a_cloudpipe(
    there: World, admin: Person, member: Person, pipe: str
) -> None:
    assert done(admin("POST", PIPES, {"cloudpipe": {"project_id": "project"}})) == {"instance_id": pipe}
    (seen,) = admin.get(PIPES)["cloudpipes"]
    assert seen.pop("created_at")
    assert seen == {
        "project_id": "project",
        "instance_id": pipe,
        "internal_ip": "10.30.0.2",
        "public_ip": "203.0.113.1",
        "public_port": 1000,
        "state": "running",
    }
    shown = member.get(f"{C}/servers/{pipe}")["server"]
    assert (shown["name"], shown["config_drive"]) == ("project-vpn", "True")
    assert admin("DELETE", PIPE).status_code == 202
    there.settle()
    assert admin.get(PIPES) == {"cloudpipes": []}
    assert message(admin("DELETE", PIPE), 404, "itemNotFound") == "Project project has no cloudpipe."


def test_people_of_the_project_see_and_revoke_their_own_certificates(
    there: World, admin: Person, member: Person, stranger: Person, reader: Person, pipe: str
) -> None:
    own, other = issued(member), issued(admin, "root")
    assert own["private_key"].startswith("-----BEGIN PRIVATE KEY-----")
    assert own["private_key"].strip() in own["config"]
    listed = member.get(CERTIFICATES)["certificates"]
    assert [(one["serial"], one["revoked_at"]) for one in listed] == [(own["serial"], None)]
    assert set(listed[0]) == {"serial", "name", "user_id", "created_at", "expires_at", "revoked_at"}
    assert len(admin.get(CERTIFICATES)["certificates"]) == 2
    assert reader.get(CERTIFICATES) == {"certificates": []}
    for who, serial in ((stranger, own["serial"]), (member, other["serial"]), (member, "1")):
        told = message(who("DELETE", f"{CERTIFICATES}/{serial}"), 404, "itemNotFound")
        assert "root" not in told
    assert stranger("POST", CERTIFICATES, {"certificate": {"name": "eve"}}).status_code == 404
    assert reader("POST", CERTIFICATES, {"certificate": {"name": "eve"}}).status_code == 403
    assert member("DELETE", f"{CERTIFICATES}/{own['serial']}").status_code == 202
    assert member.get(f"{C}/servers/{pipe}")["server"]["OS-EXT-STS:task_state"] == "rebooting_hard"
    there.settle()
    assert member.status(pipe) == "ACTIVE"
    assert member.get(CERTIFICATES)["certificates"][0]["revoked_at"] is not None


def test_nobody_is_shown_the_keys_of_a_cloudpipe(admin: Person, pipe: str) -> None:
    told = admin("GET", f"{C}/servers/{pipe}", headers={"OpenStack-API-Version": "compute 2.79"})
    assert told.json is not None
    assert told.json["server"]["OS-EXT-SRV-ATTR:user_data"] is None
    assert "PRIVATE" not in told.get_data(as_text=True)


def test_where_it_is_reached_is_configured(admin: Person, pipe: str) -> None:
    body = {"configure_project": {"vpn_ip": "198.51.100.7", "vpn_port": "1194", "project_id": "project"}}
    assert admin("PUT", f"{PIPES}/configure-project", body).status_code == 202
    (seen,) = admin.get(PIPES)["cloudpipes"]
    assert (seen["public_ip"], seen["public_port"]) == ("198.51.100.7", 1194)


@pytest.mark.parametrize(
    ("method", "path", "body", "word"),
    [
        ("POST", PIPES, {"cloudpipe": {}}, "project_id"),
        ("POST", PIPES, {"cloudpipe": []}, "cloudpipe"),
        ("POST", PIPES, {"cloudpipe": {"project_id": "project", "name": "x"}}, "name cannot be set"),
        ("PUT", f"{PIPES}/configure-project", {"configure_project": {"vpn_ip": "x", "vpn_port": 1}}, "vpn_ip"),
        ("PUT", f"{PIPES}/configure-project", {"configure_project": {"vpn_ip": "1.2.3.4"}}, "vpn_port"),
        ("PUT", f"{PIPES}/configure-project", {"configure_project": {"vpn_ip": "1.2.3.4", "vpn_port": 0}}, "vpn_port"),
        ("POST", CERTIFICATES, {"certificate": {"name": ""}}, "name"),
        ("POST", CERTIFICATES, {"certificate": {"name": "a\nb"}}, "name"),
    ],
)  # fmt: skip
def test_bodies_that_say_nothing_usable(admin: Person, method: str, path: str, body: Any, word: str) -> None:
    assert word in message(admin(method, path, body), 400, "badRequest")


@pytest.mark.parametrize(("asked", "shown"), [(True, "True"), ("true", "True"), (False, ""), ("", ""), (..., "")])
def test_a_server_says_whether_it_has_a_config_drive(member: Person, asked: Any, shown: str) -> None:
    server_id = member.booted(config_drive=asked, networks="none")
    assert member.get(f"{C}/servers/{server_id}")["server"]["config_drive"] == shown


def test_user_data_brings_a_config_drive(member: Person) -> None:
    server_id = member.booted(user_data="QUFB", networks="none")
    assert member.get(f"{C}/servers/{server_id}")["server"]["config_drive"] == "True"
    assert "config_drive" in message(member.boot(config_drive="perhaps", networks="none"), 400, "badRequest")
