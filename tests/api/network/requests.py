"""What tests of the Network API say often."""

from typing import Any

from tests.api.compute.api_clients import Person, World, done

N = "/network/v2.0"


def refused(person: Person, method: str, path: str, body: Any, status: int) -> str:
    """The message of a refusal, worded as the Network API does."""
    answer = done(person(method, f"{N}/{path}", body), status)
    assert set(answer) == {"NeutronError"}
    return str(answer["NeutronError"]["message"])


def taken(person: Person, pool: str, **more: Any) -> dict[str, Any]:
    """A floating address that somebody has taken."""
    body = {"floatingip": {"floating_network_id": pool, **more}}
    return dict(done(person("POST", f"{N}/floatingips", body), 201)["floatingip"])


def port(person: Person, server_id: str, network_id: str) -> dict[str, Any]:
    """The port that a server has in a network."""
    rows = person.get(f"{N}/ports?device_id={server_id}&network_id={network_id}")["ports"]
    assert len(rows) == 1
    return dict(rows[0])


def booted(there: World, person: Person, *networks: str) -> str:
    """A running server in these networks."""
    server_id = person.booted(networks=[{"uuid": network_id} for network_id in networks])
    there.settle()
    assert person.status(server_id) == "ACTIVE"
    return server_id
