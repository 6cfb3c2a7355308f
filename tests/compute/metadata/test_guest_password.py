"""Password that a guest posts once, and that nobody else can post, read or replace."""

import pytest

from climate.compute.errors import BadRequest, Conflict, NotFound
from climate.compute.metadata import guest_password, metadata_service
from tests.compute.metadata.conftest import Cloud
from tests.compute.network.recorded_network import Books


@pytest.fixture
def place(cloud: Cloud) -> Books:
    made = cloud(manager="flat_dhcp")
    made.served("office", "10.1.0.0/24")
    return made


def booted(place: Books) -> tuple[str, str]:
    """A new server: its id, and its address."""
    (server,) = place.boot()
    return server.id, place.fixed(server.id)[0]


def read(place: Books, address: str) -> str:
    return metadata_service.document(place.compute, address, "/openstack/latest/password").content.decode()


def test_a_password_is_posted_once_until_it_is_deleted(place: Books) -> None:
    (server_id, address), (other_id, other) = booted(place), booted(place)
    assert (read(place, address), guest_password.of_server(place.compute, server_id)) == ("", "")
    guest_password.post(place.compute, address, b"c2VjcmV0")
    assert (read(place, address), guest_password.of_server(place.compute, server_id)) == ("c2VjcmV0", "c2VjcmV0")
    assert (read(place, other), guest_password.of_server(place.compute, other_id)) == ("", "")
    with pytest.raises(Conflict, match=f"DELETE /servers/{server_id}/os-server-password"):
        guest_password.post(place.compute, address, b"another")
    guest_password.delete(place.compute, server_id)
    guest_password.post(place.compute, address, b"another")
    assert guest_password.of_server(place.compute, server_id) == "another"


@pytest.mark.parametrize("content", [b"", b"x" * (guest_password.LONGEST + 1), b"\xff", b"a\0b"])
def test_a_password_that_is_no_short_text_is_refused(place: Books, content: bytes) -> None:
    server_id, address = booted(place)
    with pytest.raises(BadRequest, match="The password"):
        guest_password.post(place.compute, address, content)
    assert guest_password.of_server(place.compute, server_id) == ""


def test_an_address_of_no_server_posts_nothing(place: Books) -> None:
    booted(place)
    with pytest.raises(NotFound, match=r"No server has the address 10\.1\.0\.200"):
        guest_password.post(place.compute, "10.1.0.200", b"word")
