"""The metadata service: documents for a server that is known by its source address, and nothing for others."""

import base64
import json

import pytest

from climate.compute.errors import NotFound
from climate.compute.metadata import config_drives, metadata_service
from climate.compute.metadata.metadata_service import BYTES, EC2_VERSIONS, JSON, OPENSTACK_VERSIONS, Document
from climate.compute.projects import keypairs
from tests.compute.metadata.conftest import Cloud
from tests.compute.network.recorded_network import Books

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKwSjiF1rVyFUgGOIFkCBwMrMvFKKNVVkVUu8IZHbCzL ada"
SCRIPT = b"#!/bin/sh\necho \xff"


@pytest.fixture
def place(cloud: Cloud) -> Books:
    made = cloud(manager="flat_dhcp")
    made.served("office", "10.1.0.0/24")
    keypairs.create(made.compute, "u1", "demo", "laptop", KEY)
    return made


def booted(place: Books, **wanted: object) -> tuple[str, str]:
    """A new server: its id, and its address."""
    (server,) = place.boot(**wanted)
    return server.id, place.fixed(server.id)[0]


def read(place: Books, address: str, path: str) -> str:
    return metadata_service.document(place.compute, address, path).content.decode()


def test_the_documents_of_openstack_are_those_of_the_server_with_the_address(place: Books) -> None:
    user_data = base64.b64encode(SCRIPT).decode()
    server_id, address = booted(place, name="Web 1", key_name="laptop", user_id="u1", user_data=user_data)
    other_id, other = booted(place, name="db")

    one = json.loads(read(place, address, "/openstack/latest/meta_data.json"))
    assert (one["uuid"], one["name"], one["hostname"]) == (server_id, "Web 1", "web-1.novalocal")
    assert one["public_keys"] == {"laptop": KEY}
    assert one["keys"] == [{"name": "laptop", "type": "ssh", "data": KEY}]
    assert one["project_id"] == "demo"
    found = metadata_service.document(place.compute, address, "openstack/latest/user_data")
    assert found == Document(SCRIPT, BYTES)

    two = metadata_service.document(place.compute, other, "/openstack/2018-08-27/meta_data.json")
    assert two.kind == JSON
    assert json.loads(two.content)["uuid"] == other_id
    assert "public_keys" not in json.loads(two.content)
    with pytest.raises(NotFound, match="/openstack/latest/user_data"):
        read(place, other, "/openstack/latest/user_data")


def test_the_network_data_are_also_on_the_config_drive(place: Books) -> None:
    server_id, address = booted(place, config_drive=True)
    (vif,) = place.vifs(server_id)
    found = json.loads(read(place, address, "/openstack/latest/network_data.json"))
    (link,), (network,) = found["links"], found["networks"]
    assert (link["ethernet_mac_address"], link["vif_id"]) == (vif.mac, vif.id)
    assert (network["type"], network["link"], network["network_id"]) == ("ipv4_dhcp", link["id"], vif.network.id)
    drive = config_drives.of_server(place.compute, place.place.look(server_id))
    assert json.loads(drive[config_drives.NETWORK_DATA]) == found


def test_entries_of_ec2_are_short_texts_in_folders(place: Books) -> None:
    server_id, address = booted(place, name="web", key_name="laptop", user_id="u1")
    assert read(place, address, "/").splitlines() == list(EC2_VERSIONS)
    assert read(place, address, "/latest/") == "meta-data/"
    names = read(place, address, "/latest/meta-data/").splitlines()
    assert {"instance-id", "hostname", "local-ipv4", "public-keys/", "placement/"} <= set(names)
    entries = {
        "instance-id": f"i-{server_id.replace('-', '')}",
        "hostname": "web.novalocal",
        "local-hostname": "web.novalocal",
        "local-ipv4": address,
        "public-ipv4": "",
        "instance-type": "tiny",
        "placement": "availability-zone",
        "public-keys/": "0=laptop",
        "public-keys/0": "openssh-key",
        "public-keys/0/openssh-key": KEY,
    }
    assert {path: read(place, address, f"/2009-04-04/meta-data/{path}") for path in entries} == entries


def test_folders_of_openstack_list_what_there_is(place: Books) -> None:
    _, address = booted(place)
    assert read(place, address, "/openstack/").splitlines() == list(OPENSTACK_VERSIONS)
    wanted = ["meta_data.json", "network_data.json", "vendor_data.json", "password"]
    assert read(place, address, "/openstack/latest").splitlines() == wanted


@pytest.mark.parametrize(
    "path",
    [
        *("/1999-01-01/meta-data", "/latest/meta-data/none", "/latest/meta-data/hostname/more", "/latest/public-keys"),
        *("/openstack/2999-01-01", "/openstack/latest/none", "/openstack/latest/meta_data.json/x", "/latest/user-data"),
        *("/latest/meta-data/public-keys", "/openstack/../openstack/latest/meta_data.json", "/\x00", "/latest/\ud800"),
    ],
)
def test_a_path_without_a_document_is_refused(place: Books, path: str) -> None:
    _, address = booted(place)
    with pytest.raises(NotFound):
        metadata_service.document(place.compute, address, path)


@pytest.mark.parametrize(
    "address", ["", "10.1.0.1", "10.1.0.200", "203.0.113.9", "::1", "fe80::1", "nonsense", "10.1.0.3/8"]
)
def test_an_address_of_no_server_gets_nothing(place: Books, address: str) -> None:
    booted(place)
    with pytest.raises(NotFound, match="No server has the address"):
        metadata_service.document(place.compute, address, "/openstack/latest/meta_data.json")


def test_the_address_of_a_deleted_server_gets_nothing_even_while_it_is_kept(place: Books) -> None:
    server_id, address = booted(place)
    place.delete(server_id)
    assert place.row(address)[0], "the address waits for the end of its DHCP lease"
    with pytest.raises(NotFound, match=f"No server has the address {address}"):
        metadata_service.document(place.compute, address, "/latest/meta-data/instance-id")
