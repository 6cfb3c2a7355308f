"""Floating IPs on the wire: the bytes that the peer's clients know, and what is refused."""

from typing import Any

import pytest
from flask import Flask
from sqlalchemy import Engine

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from tests.api.reservation.api_clients import Person, order, run_due, written
from tests.service.floating_ip_factory import NETWORK, OUTSIDE, spelled


@pytest.fixture
def network(climate: Climate) -> str:
    assert isinstance(climate.cloud, FakeCloud)
    climate.cloud.external = {NETWORK: OUTSIDE}
    return NETWORK


def register(admin: Person, number: int, status: int = 201) -> Any:
    body = {"floating_network_id": NETWORK, "floating_ip_address": spelled(number)}
    return admin.done(admin("POST", "/floatingips", body), status)


def wanted(amount: Any = 1, **more: Any) -> dict[str, Any]:
    """As the peer's client sends it."""
    return {
        "resource_type": "virtual:floatingip",
        "network_id": NETWORK,
        "amount": amount,
        "required_floatingips": [],
        **more,
    }


@pytest.mark.usefixtures("network")
def test_an_address_is_shown_as_the_peer_shows_it(admin: Person, reader: Person) -> None:
    made = register(admin, 7)["floatingip"]
    assert made | {"id": ""} == {
        "id": "",
        "floating_network_id": NETWORK,
        "subnet_id": "subnet-out",
        "floating_ip_address": "203.0.113.7",
        "reservable": True,
        "created_at": "2030-01-01 12:00:00.000000",
        "updated_at": None,
    }
    assert reader.get("/floatingips") == {"floatingips": [made]}
    assert reader.get(f"/floatingips/{made['id']}") == {"floatingip": made}
    gone = admin("DELETE", f"/floatingips/{made['id']}")
    assert (gone.status_code, gone.data) == (204, b"")
    assert admin("GET", f"/floatingips/{made['id']}").status_code == 404
    assert reader.get("/floatingips") == {"floatingips": []}


@pytest.mark.usefixtures("network")
def test_pages(admin: Person) -> None:
    ids = [register(admin, number)["floatingip"]["id"] for number in range(10, 15)]
    first = admin.get("/floatingips?limit=2")
    assert [one["id"] for one in first["floatingips"]] == ids[:2]
    assert "marker=" + ids[1] in first["floatingips_links"][0]["href"]
    assert [one["id"] for one in admin.get(f"/floatingips?marker={ids[1]}")["floatingips"]] == ids[2:]
    rows = admin.get(f"/floatingips/allocations?limit=3&marker={ids[0]}")["allocations"]
    assert [row["resource_id"] for row in rows] == ids[1:4]
    for path in ("/floatingips?marker=x", "/floatingips/allocations?marker=x", f"/floatingips?marker={NOBODYS}"):
        assert admin("GET", path).status_code == 400


NOBODYS = "00000000-0000-4000-8000-000000000000"


@pytest.mark.usefixtures("network")
@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({}, 400, "floating_network_id"),
        ({"floating_network_id": NETWORK}, 400, "floating_ip_address"),
        ({"floating_network_id": NETWORK, "floating_ip_address": "1.2.3"}, 400, "IPv4"),
        ({"floating_network_id": NETWORK, "floating_ip_address": "203.0.113.07"}, 400, "IPv4"),
        ({"floating_network_id": NETWORK, "floating_ip_address": "::1"}, 400, "IPv4"),
        ({"floating_network_id": NETWORK, "floating_ip_address": 7}, 400, "floating_ip_address"),
        (
            {"floating_network_id": NETWORK, "floating_ip_address": "203.0.114.7"},
            400,
            "its subnets are: 203.0.113.0/24",
        ),
        ({"floating_network_id": NETWORK, "floating_ip_address": "203.0.113.1"}, 400, "gateway"),
        ({"floating_network_id": NETWORK, "floating_ip_address": "203.0.113.150"}, 400, "allocates itself"),
        ({"floating_network_id": NETWORK, "floating_ip_address": "203.0.113.7", "x": 1}, 400, "known are"),
        ({"floating_network_id": "no", "floating_ip_address": "203.0.113.7"}, 404, "no external network 'no'"),
        ({"floating_network_id": NETWORK, "floating_ip_address": "203.0.113.8"}, 409, "already registered"),
    ],
)
def test_what_cannot_be_registered(admin: Person, body: dict[str, Any], status: int, says: str) -> None:
    before = register(admin, 8)["floatingip"]
    answer = admin("POST", "/floatingips", body)
    assert answer.status_code == status, answer.json
    assert says in answer.json["error_message"]
    assert admin.get("/floatingips")["floatingips"] == [before]


@pytest.mark.usefixtures("network")
def test_a_trial_and_a_repeated_request(admin: Person) -> None:
    body = {"floating_network_id": NETWORK, "floating_ip_address": spelled(7)}
    assert admin("POST", "/floatingips?dry_run=true", body).status_code == 200
    assert admin.get("/floatingips") == {"floatingips": []}
    sent = {"headers": {"Idempotency-Key": "one"}}
    first, again = (admin("POST", "/floatingips", body, **sent) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json == again.json
    path = f"/floatingips/{first.json['floatingip']['id']}"
    assert admin("DELETE", f"{path}?dry_run=true").status_code == 204
    assert admin.get(path)


@pytest.mark.usefixtures("network")
def test_a_lease_shows_what_it_was_promised(admin: Person, member: Person, climate: Climate) -> None:
    known = [register(admin, number)["floatingip"] for number in (7, 8)]
    lease = member.lease(reservations=[wanted("2")])
    shown = lease["reservations"][0]
    assert {key: shown[key] for key in wanted()} == wanted(2)
    assert shown["allocated_floatingips"] == [spelled(7), spelled(8)]
    assert member.get(f"/leases/{lease['id']}")["lease"] == lease
    held = {
        "id": shown["id"],
        "lease_id": lease["id"],
        "start_date": lease["start_date"],
        "end_date": lease["end_date"],
    }
    row = {"resource_id": known[0]["id"], "floating_ip_address": spelled(7), "reservations": [held]}
    assert admin.get(f"/floatingips/{known[0]['id']}/allocation") == {"allocation": row}
    assert [one["reservations"] for one in admin.get("/floatingips/allocations")["allocations"]] == [[held]] * 2
    assert admin.get(f"/floatingips/allocations?lease_id={NOBODYS}")["allocations"][0]["reservations"] == []
    refused = admin("DELETE", f"/floatingips/{known[0]['id']}")
    assert refused.status_code == 409
    assert "1 lease counts on it" in refused.json["error_message"]
    member("DELETE", f"/leases/{lease['id']}")
    run_due(climate)
    assert admin("DELETE", f"/floatingips/{known[0]['id']}").status_code == 204


@pytest.mark.usefixtures("network")
@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (wanted(0), "amount"),
        (wanted(-1), "amount"),
        (wanted(1.5), "amount"),
        (wanted("many"), "amount"),
        (wanted(10**12), "amount"),
        ({"resource_type": "virtual:floatingip", "network_id": NETWORK}, "Missing parameter amount"),
        ({"resource_type": "virtual:floatingip", "amount": 1}, "Missing parameter network_id"),
        (wanted(network_id=""), "network_id"),
        (wanted(network_id="n" * 256), "network_id"),
        (wanted(network_id=7), "network_id"),
        (wanted(network_id="\x00"), ""),
        (wanted(required_floatingips="203.0.113.7"), "required_floatingips"),
        (wanted(required_floatingips=["203.0.113.x"]), "is not an IPv4 address"),
        (wanted(required_floatingips=["2001:db8::1"]), "is not an IPv4 address"),
        (wanted(required_floatingips=[7]), "required_floatingips"),
        (wanted(required_floatingips=None), "required_floatingips"),
        (wanted(2, required_floatingips=["203.0.113.7"] * 2), "An address is given twice"),
        (wanted(1, required_floatingips=["203.0.113.7", "203.0.113.8"]), "2 are required, and amount is 1"),
        (wanted(1, required_floatingips=["203.0.113.9"]), "unavailable are 203.0.113.9"),
        (wanted(3), "3 wanted, 2 of network net-out can be reserved, 2 of them free"),
        (wanted(network_id="another"), "0 of network another can be reserved"),
        (wanted(x=1), "Unknown parameter x"),
        (wanted(grace_period=-1), "grace_period"),
    ],
)
def test_leases_that_are_refused(admin: Person, member: Person, engine: Engine, spec: Any, says: str) -> None:
    for number in (7, 8):
        register(admin, number)
    before = written(engine)
    answer = member("POST", "/leases", order(reservations=[spec]))
    assert answer.status_code == 400, answer.json
    assert says in answer.json["error_message"]
    assert written(engine) == before


@pytest.mark.usefixtures("network")
@pytest.mark.parametrize(
    ("change", "status", "says"),
    [
        ({"network_id": "another"}, 409, "network_id cannot be updated"),
        ({"amount": 3}, 400, "Not enough floating IPs available"),
        ({"required_floatingips": [spelled(8)]}, 400, "can only be updated to []"),
        ({"amount": "x"}, 400, "amount"),
        ({"x": 1}, 400, "Unknown parameter x"),
    ],
)
def test_changes_that_are_refused(
    admin: Person, member: Person, change: dict[str, Any], status: int, says: str
) -> None:
    for number in (7, 8):
        register(admin, number)
    lease = member.lease(reservations=[wanted(1, required_floatingips=[spelled(7)])])
    body = {"reservations": [{"id": lease["reservations"][0]["id"], **change}]}
    answer = member("PUT", f"/leases/{lease['id']}", body)
    assert (answer.status_code, says in answer.json["error_message"]) == (status, True), answer.json
    assert member.get(f"/leases/{lease['id']}")["lease"] == lease


@pytest.mark.usefixtures("network")
def test_fewer_for_an_active_lease_is_refused(admin: Person, member: Person, climate: Climate, app: Flask) -> None:
    for number in (7, 8, 9):
        register(admin, number)
    lease = member.lease(reservations=[wanted(2)], start_date="now")
    run_due(climate)
    body = {"reservations": [{"id": lease["reservations"][0]["id"], "amount": 1}]}
    answer = member("PUT", f"/leases/{lease['id']}", body)
    assert answer.status_code == 400
    assert "cannot become less while the lease is active" in answer.json["error_message"]
    body["reservations"][0]["amount"] = 3
    grown = member.done(member("PUT", f"/leases/{lease['id']}", body))["lease"]
    assert grown["reservations"][0]["allocated_floatingips"] == [spelled(7), spelled(8), spelled(9)]
