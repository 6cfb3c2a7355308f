"""Cloudpipes of projects: made once, told their keys at each start, let go with their certificates."""

import re
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest
from cryptography import x509
from sqlalchemy import text

from climate.compute.errors import BadRequest, Conflict, NotFound, QuotaExceeded
from climate.compute.metadata import config_drives, metadata_service
from climate.compute.models.server import ACTIVE, REBOOT_HARD
from climate.compute.network import networks
from climate.compute.nodes import services
from climate.compute.servers import create
from climate.compute.servers.actions import get
from climate.compute.store.projects import flavors
from climate.compute.vpn import cloudpipes
from climate.compute.vpn.authority import LIFE
from tests.compute.cloud_factory import request
from tests.compute.network.conftest import Cloud
from tests.compute.network.recorded_network import Books

BY = {"project_id": "admins", "user_id": "root", "request_id": "req-1"}
PUBLIC = IPv4Address("192.0.2.1")


@pytest.fixture
def there(cloud: Cloud) -> Books:
    """A cloud in which the project `demo` can have a cloudpipe, with three addresses for clients."""
    made = cloud(manager="vlan", vpn_image=services.IMAGE_ID, vpn_address=PUBLIC, vpn_flavor="tiny", vpn_clients=3)
    services.furnish(made.compute)
    made.settle()
    return made


def created(there: Books, project_id: str = "demo") -> str:
    server_id = cloudpipes.create(there.compute, project_id, BY)
    there.place.settle()
    return server_id


def script(there: Books, server_id: str) -> str:
    """The user data that a server would be started with now."""
    return config_drives.of_server(there.compute, get(there.compute, server_id))[config_drives.USER_DATA].decode()


def part(told: str, name: str) -> str:
    """A file that the script writes."""
    found = re.search(rf"cat >/etc/cloudpipe/{name} <<'END'\n(.*?)\nEND\n", told, re.DOTALL)
    assert found is not None, told
    return found[1]


def test_a_cloudpipe_has_the_address_that_is_kept_for_it_and_is_created_once(there: Books) -> None:
    server_id = created(there)
    server = get(there.compute, server_id)
    assert (server.status, server.project_id, server.name) == (ACTIVE, "demo", "demo-vpn")
    assert there.fixed(server_id) == ["10.10.0.2"]
    assert created(there) == server_id
    (row,) = cloudpipes.listed(there.compute)
    assert (row["server_id"], row["project_id"]) == (server_id, "demo")
    assert (row["internal_ip"], row["public_ip"], row["public_port"]) == ("10.10.0.2", str(PUBLIC), 1000)
    assert cloudpipes.status_words(row) == "running"
    assert there.fixed(there.boot()[0].id) == ["10.10.0.3"]
    assert there.wrong() == []


def test_its_script_has_what_its_vpn_needs_and_the_database_has_no_key(there: Books) -> None:
    server_id = created(there)
    told = script(there, server_id)
    assert told.startswith("#cloud-boothook\n#!/bin/sh\n")
    conf = part(told, "server.conf")
    assert "ifconfig-pool 10.10.0.252 10.10.0.254 255.255.255.0" in conf
    assert "ip route replace 10.10.0.252/31 dev cloudpipe\nip route replace 10.10.0.254/32 dev cloudpipe\n" in told
    assert there.vifs(server_id)[0].mac in told
    authority, server = (x509.load_pem_x509_certificate(part(told, name).encode()) for name in ("ca.crt", "server.crt"))
    server.verify_directly_issued_by(authority)
    assert "PRIVATE KEY" in part(told, "server.key")
    with there.compute.engine.connect() as conn:
        for table in ("compute_vpn_authorities", "compute_vpn_certificates", "compute_servers"):
            rows = conn.execute(text(f"SELECT row_to_json(t)::text FROM {table} t")).scalars().all()
            assert not [row for row in rows if "PRIVATE" in row]


def test_the_metadata_service_does_not_serve_its_keys(there: Books) -> None:
    address = there.fixed(created(there))[0]
    for path in ("/openstack/latest/user_data", "/latest/user-data"):
        with pytest.raises(NotFound, match="There is no metadata at"):
            metadata_service.document(there.compute, address, path)


def test_only_a_cloudpipe_may_speak_for_the_clients(there: Books) -> None:
    from climate.compute.servers.interfaces import vif_plugging

    pipe, other = get(there.compute, created(there)), there.boot()[0]
    with there.compute.engine.connect() as conn:
        ranges = [[vif_plugging._routed(conn, vif) for vif in there.vifs(one.id)] for one in (pipe, other)]
    assert ranges == [[(IPv4Network("10.10.0.252/31"), IPv4Network("10.10.0.254/32"))], [()]]


def test_a_user_gets_a_certificate_of_the_project_and_a_file_to_connect_with(there: Books) -> None:
    told = script(there, created(there))
    made = cloudpipes.issue(there.compute, "demo", "ada", "u1")
    authority = x509.load_pem_x509_certificate(made.authority.encode())
    assert made.authority.strip() == part(told, "ca.crt")
    x509.load_pem_x509_certificate(made.pair.certificate.encode()).verify_directly_issued_by(authority)
    assert f"remote {PUBLIC} 1000\n" in made.config
    assert "PRIVATE KEY" in made.config
    assert "remote-cert-tls server" in made.config
    (row,) = cloudpipes.certificates(there.compute, "demo", "u1")
    assert (row["serial"], row["name"], row["revoked_at"]) == (made.serial, "ada", None)
    assert cloudpipes.certificates(there.compute, "demo", "u2") == []


def test_a_revoked_certificate_is_on_the_list_with_which_the_cloudpipe_is_restarted(there: Books) -> None:
    server_id = created(there)
    made = cloudpipes.issue(there.compute, "demo", "ada", "u1")
    with pytest.raises(NotFound):
        cloudpipes.revoke(there.compute, "demo", made.serial, BY, "u2")
    with pytest.raises(NotFound):
        cloudpipes.revoke(there.compute, "other", made.serial, BY)
    assert get(there.compute, server_id).task is None
    cloudpipes.revoke(there.compute, "demo", made.serial, BY, "u1")
    assert get(there.compute, server_id).task == REBOOT_HARD
    found = x509.load_pem_x509_crl(part(script(there, server_id), "crl.pem").encode())
    assert [f"{one.serial_number:x}" for one in found] == [made.serial]
    there.place.settle()
    assert get(there.compute, server_id).status == ACTIVE


def test_a_revocation_during_other_work_says_that_it_has_to_be_repeated(there: Books) -> None:
    server_id = created(there)
    made = cloudpipes.issue(there.compute, "demo", "ada", "u1")
    with there.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_servers SET task = 'stop' WHERE id = :id"), {"id": server_id})
    with pytest.raises(Conflict, match="is revoked, and is refused once"):
        cloudpipes.revoke(there.compute, "demo", made.serial, BY)
    with there.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_servers SET task = NULL WHERE id = :id"), {"id": server_id})
    cloudpipes.revoke(there.compute, "demo", made.serial, BY)
    assert get(there.compute, server_id).task == REBOOT_HARD


def test_certificates_are_good_for_the_next_cloudpipe_unless_the_authority_goes_too(there: Books) -> None:
    first = part(script(there, created(there)), "ca.crt")
    cloudpipes.delete(there.compute, "demo", BY)
    there.place.settle()
    assert cloudpipes.listed(there.compute) == []
    with pytest.raises(Conflict, match="is not free yet"):
        created(there)
    _let_go(there)
    assert part(script(there, created(there)), "ca.crt") == first
    cloudpipes.issue(there.compute, "demo", "ada", "u1")
    cloudpipes.delete(there.compute, "demo", BY, with_authority=True)
    there.place.settle()
    _let_go(there)
    with pytest.raises(NotFound):
        cloudpipes.certificates(there.compute, "demo")
    with pytest.raises(NotFound):
        cloudpipes.delete(there.compute, "demo", BY, with_authority=True)
    assert part(script(there, created(there)), "ca.crt") != first
    assert cloudpipes.certificates(there.compute, "demo") == []


def test_the_network_of_a_cloudpipe_says_what_keeps_it(there: Books) -> None:
    server_id = created(there)
    network_id = there.vifs(server_id)[0].network.id
    with pytest.raises(Conflict, match="climate cloudpipe delete demo"), there.compute.engine.begin() as conn:
        networks.disassociate(conn, network_id)
    cloudpipes.delete(there.compute, "demo", BY)
    there.place.settle()
    _let_go(there)
    with there.compute.engine.begin() as conn:
        networks.disassociate(conn, network_id)


def test_where_a_cloudpipe_is_reached_may_be_configured_and_is_one_networks_alone(there: Books) -> None:
    created(there)
    cloudpipes.configure(there.compute, "demo", "198.51.100.7", 1194)
    (row,) = cloudpipes.listed(there.compute)
    assert (row["public_ip"], row["public_port"]) == ("198.51.100.7", 1194)
    assert "remote 198.51.100.7 1194\n" in cloudpipes.issue(there.compute, "demo", "ada", "u1").config
    with pytest.raises(Conflict, match="leads to another network's cloudpipe"):
        cloudpipes.configure(there.compute, "other", "198.51.100.7", 1194)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"vpn_image": None}, "CLIMATE_VPN_IMAGE_ID"),
        ({"vpn_image": "7d9a2c4e-0000-4000-8000-000000000000"}, "is no image"),
        ({"vpn_flavor": "nothing"}, "CLIMATE_VPN_FLAVOR"),
        ({"vpn_clients": 0}, "CLIMATE_VPN_CLIENTS"),
        ({"vpn_address": None}, "CLIMATE_VPN_IP"),
    ],
)
def test_a_cloudpipe_that_there_cannot_be_says_what_to_set(cloud: Cloud, options: Any, words: str) -> None:
    given = {"vpn_image": services.IMAGE_ID, "vpn_address": PUBLIC, "vpn_flavor": "tiny", "vpn_clients": 3, **options}
    there = cloud(manager="vlan", **given)
    services.furnish(there.compute)
    there.settle()
    with pytest.raises(BadRequest, match=words):
        cloudpipes.create(there.compute, "demo", BY)
    assert there.place.count("compute_servers") == 0


def test_a_project_has_so_many_certificates_at_most(there: Books) -> None:
    created(there)
    with there.compute.engine.begin() as conn:
        conn.execute(
            text("""INSERT INTO compute_vpn_certificates (serial, project_id, user_id, name, expires_at)
                    SELECT i, 'demo', 'u', 'n', CAST(:until AS timestamptz) FROM generate_series(1, :count) AS i"""),
            {"count": cloudpipes.MOST_CERTIFICATES, "until": there.clock.time},
        )
    cloudpipes.issue(there.compute, "demo", "those that have expired do not count", "u1")
    with there.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_vpn_certificates SET expires_at = expires_at + interval '1 hour'"))
    with pytest.raises(QuotaExceeded, match="at most 1000"):
        cloudpipes.issue(there.compute, "demo", "ada", "u1")


def test_a_server_is_given_its_user_data_and_its_keys(there: Books) -> None:
    with there.compute.engine.begin() as conn:
        conn.execute(
            text("""INSERT INTO compute_keypairs (user_id, name, public_key, fingerprint)
                    VALUES ('dora', 'mine', 'ssh-ed25519 AAAA', '00')""")
        )
    flavor = _tiny(there)
    wanted = {"user_data": "IyEvYmluL3No", "key_name": "mine", "metadata": {"a": "b"}}
    (told,) = create.boot(there.compute, request(flavor, **wanted))
    (asked,) = create.boot(there.compute, request(flavor, config_drive=True))
    (plain,) = create.boot(there.compute, request(flavor))
    files = config_drives.of_server(there.compute, get(there.compute, told.id))
    assert files[config_drives.USER_DATA] == b"#!/bin/sh"
    for words in (b'"public_keys": {"mine": "ssh-ed25519 AAAA"}', b'"meta": {"a": "b"}', told.id.encode()):
        assert words in files[config_drives.META_DATA]
    assert set(config_drives.of_server(there.compute, get(there.compute, asked.id))) == {
        config_drives.META_DATA,
        config_drives.NETWORK_DATA,
    }
    assert config_drives.of_server(there.compute, get(there.compute, plain.id)) == {}


def _tiny(there: Books) -> Any:
    with there.compute.engine.connect() as conn:
        return flavors.find(conn, "tiny")


def _let_go(there: Books) -> None:
    """Let so much time pass that addresses which were given up are free, whether or not their guest released them."""
    there.forward(601)
    there.settle()


def test_a_host_serves_a_network_whose_vpn_port_leads_to_another_ones(cloud: Cloud) -> None:
    there = cloud(manager="vlan", vpn_image=services.IMAGE_ID, vpn_address=PUBLIC, vpn_flavor="tiny", vpn_clients=3)
    services.furnish(there.compute)
    there.settle()
    created(there)
    taken = next(one for one in there.listed() if one.host is None)
    cloudpipes.configure(there.compute, "demo", str(PUBLIC), taken.vpn_public_port or 0)
    for _ in there.listed():
        there.tend()
    assert [one for one in there.listed() if one.host is None] == []
    assert there.network(taken.id).vpn_public_address is None


def test_an_authority_that_has_expired_signs_nothing_and_says_what_to_do(there: Books) -> None:
    created(there)
    there.forward(LIFE.total_seconds() + 1)
    with pytest.raises(Conflict, match=r"expired on .*: delete the cloudpipe with its authority"):
        cloudpipes.issue(there.compute, "demo", "ada", "u1")


def test_an_authority_stays_when_its_cloudpipe_cannot_be_deleted(there: Books) -> None:
    created(there)

    def broken(host: str, *servers: str) -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        cloudpipes.delete(replace(there.compute, cast=broken), "demo", BY, with_authority=True)
    assert cloudpipes.certificates(there.compute, "demo") == []
