"""The password that a guest posted is shown to its project, and deleted by it."""

import pytest

from climate.compute.store.servers import guest_passwords
from tests.api.compute.api_clients import Person, World


@pytest.fixture
def server(there: World, member: Person) -> str:
    made = member.booted()
    there.settle()
    return made


def test_the_project_reads_and_deletes_the_password(
    there: World, member: Person, stranger: Person, server: str
) -> None:
    path = f"/compute/v2.1/servers/{server}/os-server-password"
    assert member.get(path) == {"password": ""}
    with there.climate.engine.begin() as conn:
        assert guest_passwords.add(conn, server, "c2VjcmV0")
    assert member.get(path) == {"password": "c2VjcmV0"}
    assert (stranger("GET", path).status_code, stranger("DELETE", path).status_code) == (404, 404)
    assert member("DELETE", path).status_code == 204
    assert member.get(path) == {"password": ""}
