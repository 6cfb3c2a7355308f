"""Ports by the Network API: the interfaces of servers, which their owners delete."""

from tests.api.compute.api_clients import Person, World, done
from tests.api.network.requests import N, booted, refused, taken
from tests.api.network.requests import port as port_of


def test_a_deleted_port_is_an_interface_that_its_server_loses(
    there: World, member: Person, stranger: Person, served: str, pool: str
) -> None:
    private = str(member.get(f"{N}/networks?name=private")["networks"][0]["id"])
    server_id = booted(there, member, private, served)
    port = port_of(member, server_id, served)
    mine = taken(member, pool, port_id=port["id"])
    refused(stranger, "DELETE", f"ports/{port['id']}", None, 404)
    done(member("DELETE", f"{N}/ports/{port['id']}"), 204)
    assert "task_state" in refused(member, "DELETE", f"ports/{port_of(member, server_id, private)['id']}", None, 409)
    there.settle()
    assert member.status(server_id) == "ACTIVE"
    refused(member, "GET", f"ports/{port['id']}", None, 404)
    assert [one["network_id"] for one in member.get(f"{N}/ports?device_id={server_id}")["ports"]] == [private]
    assert member.get(f"{N}/floatingips/{mine['id']}")["floatingip"]["port_id"] is None


def test_readers_do_not_delete_ports(there: World, member: Person, reader: Person, served: str) -> None:
    port = port_of(member, booted(there, member, served), served)
    refused(reader, "DELETE", f"ports/{port['id']}", None, 403)
    refused(member, "DELETE", "ports/nobody", None, 404)
    assert member.get(f"{N}/ports/{port['id']}")["port"] == port
