"""Room for servers on the wire: the peer's keys and words, in the forms in which its client sends them."""

import json
from typing import Any, cast
from uuid import UUID

import pytest

from climate.cloud import CloudFlavor
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from tests.api.reservation.api_clients import Person, order, run_due

Body = dict[str, Any]

ROOM: Body = {
    "resource_type": "virtual:instance",
    "vcpus": 1,
    "memory_mb": 512,
    "disk_gb": 1,
    "amount": 2,
    "affinity": "False",
    "resource_properties": "",
}
FLAVOR: Body = {"resource_type": "flavor:instance", "flavor_id": "tiny", "amount": 2, "affinity": "None"}

PEERS = {
    "id", "lease_id", "resource_id", "resource_type", "status", "missing_resources", "resources_changed", "created_at",
    "updated_at", "vcpus", "memory_mb", "disk_gb", "amount", "affinity", "resource_properties", "flavor_id",
    "aggregate_id", "server_group_id",
}  # fmt: skip
SIZES = ("amount", "disk_gb", "memory_mb", "vcpus")
OURS = {"on_end", "grace_period"}


@pytest.fixture(autouse=True)
def flavors(climate: Climate) -> None:
    cast("FakeCloud", climate.cloud).flavors["tiny"] = CloudFlavor("tiny", "tiny", 1, 256, 1, {"hw:x": "1"})


def made(member: Person, **changes: Any) -> Body:
    lease = member.lease(reservations=[{**ROOM, **changes}])
    return cast("Body", lease["reservations"][0])


def refused(member: Person, status: int, spec: Body) -> str:
    body = order(reservations=[{key: value for key, value in spec.items() if value is not ...}])
    said = member.done(member("POST", "/leases", body), status)
    return str(said["error_message"])


def test_the_keys(member: Person) -> None:
    one = made(member)
    assert set(one) == PEERS | OURS
    assert (one["flavor_id"], one["resource_id"], one["aggregate_id"]) == (one["id"], one["id"], None)
    assert str(UUID(one["server_group_id"])) == one["server_group_id"]
    assert {key: one[key] for key in ("vcpus", "memory_mb", "disk_gb", "amount", "resource_properties")} == {
        "vcpus": 1,
        "memory_mb": 512,
        "disk_gb": 1,
        "amount": 2,
        "resource_properties": "",
    }


@pytest.mark.parametrize(
    ("sent", "shown"),
    [("True", True), ("False", False), ("None", None), ("true", True), (True, True), (False, False), (None, None)],
)
def test_affinity_as_clients_send_it(member: Person, sent: object, shown: bool | None) -> None:
    one = made(member, affinity=sent)
    assert one["affinity"] is shown
    assert (one["server_group_id"] is None) is (shown is None)


def test_what_need_not_be_said(member: Person) -> None:
    spec = {key: value for key, value in ROOM.items() if key not in ("affinity", "resource_properties")}
    lease = member.lease(reservations=[{**spec, "amount": "2", "vcpus": "1"}])
    one = lease["reservations"][0]
    assert (one["affinity"], one["resource_properties"], one["amount"], one["vcpus"]) == (None, "", 2, 1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"vcpus": ...}, "Missing parameter vcpus"),
        (dict.fromkeys(SIZES, ...), f"Missing parameter {', '.join(SIZES)}"),
        ({"amount": 0}, "Malformed parameter amount"),
        ({"amount": -1}, "Malformed parameter amount"),
        ({"amount": 2**31}, "Malformed parameter amount"),
        ({"amount": 10**12}, "Malformed parameter amount"),
        ({"vcpus": "two"}, "Malformed parameter vcpus"),
        ({"memory_mb": 1.5}, "Malformed parameter memory_mb"),
        ({"disk_gb": True}, "Malformed parameter disk_gb"),
        ({"disk_gb": None}, "Malformed parameter disk_gb"),
        ({"affinity": "maybe"}, "Malformed parameter affinity"),
        ({"affinity": 1}, "Malformed parameter affinity"),
        ({"affinity": ["True"]}, "Malformed parameter affinity"),
        ({"resource_properties": '["~", "$vcpus", "1"]'}, "Malformed requirements"),
        ({"resource_properties": '["==", "$nobodys", "1"]'}, "no host has a property called nobodys"),
        ({"hypervisor_properties": ""}, "Unknown parameter hypervisor_properties"),
        ({"flavor_id": "tiny"}, "Unknown parameter flavor_id"),
        ({"server_group_id": "2b8b57a5-5aa5-4b0e-9d2b-1d6d1c0f5a11"}, "Unknown parameter server_group_id"),
        ({"on_end": "recycle"}, "Malformed parameter on_end"),
        ({"on_end": "suspend"}, "Malformed parameter on_end"),
        ({"grace_period": 86401}, "grace_period may be 86400 seconds at most here"),
        ({"resource_id": "2b8b57a5-5aa5-4b0e-9d2b-1d6d1c0f5a11"}, "not together with resource_id"),
    ],
)  # fmt: skip
def test_bad_input(member: Person, changes: Body, said: str) -> None:
    assert said in refused(member, 400, {**ROOM, **changes})


def test_shortage(member: Person) -> None:
    made(member, amount=4, affinity="None", vcpus=8)
    said = refused(member, 409, {**ROOM, "amount": 3, "affinity": "True", "vcpus": 2})
    assert said == (
        "Not enough hosts available: room for 3 servers of 2 VCPUs, 512 MB and 1 GB wanted on one host, "
        "8 hosts match, and 2 fit on them; it would fit from 2030-01-02 12:00:00 UTC"
    )


def test_changes(member: Person, climate: Climate) -> None:
    lease = member.lease(reservations=[ROOM], start_date="now", end_date="2030-01-02 12:00")
    number = lease["reservations"][0]["id"]

    def put(status: int, **spec: Any) -> Any:
        body = {"reservations": [{"id": number, **spec}]}
        return member.done(member("PUT", f"/leases/{lease['id']}", body), status)

    assert put(200, amount=4, affinity="None")["lease"]["reservations"][0]["affinity"] is None
    assert put(200, vcpus="2", memory_mb=256)["lease"]["reservations"][0]["vcpus"] == 2
    run_due(climate)
    assert put(409, amount=3)["error_message"].startswith("amount cannot be updated")
    assert put(409, vcpus=1)["error_message"] == "vcpus cannot be updated"
    assert put(400, amount=0)["error_message"].startswith("Malformed parameter amount")
    assert put(200, amount=5)["lease"]["reservations"][0]["amount"] == 5
    assert put(200, amount=5, vcpus=2, affinity=None)["lease"]["reservations"][0]["amount"] == 5
    assert put(409, amount=999)["error_message"].startswith("Not enough hosts available")


def test_a_flavor(member: Person) -> None:
    lease = member.lease(reservations=[{**FLAVOR, "resource_properties": ""}])
    (one,) = lease["reservations"]
    assert set(one) == PEERS | OURS
    assert (one["flavor_id"], one["affinity"], one["vcpus"]) == (one["id"], None, 1)
    assert json.loads(one["resource_properties"])["extra_specs"] == {"hw:x": "1"}
    path = f"/leases/{lease['id']}"
    for spec in ({"amount": 3}, {"flavor_id": "other"}, {"affinity": True}):
        said = member.done(member("PUT", path, {"reservations": [{"id": one["id"], **spec}]}), 409)
        assert said["error_message"] == f"{next(iter(spec))} cannot be updated"
    assert member.done(member("PUT", path, {"end_date": "2030-01-02 13:00"}))["lease"]["end_date"].startswith(
        "2030-01-02T13"
    )


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"flavor_id": ...}, 400, "Missing parameter flavor_id"),
        ({"amount": ...}, 400, "Missing parameter amount"),
        ({"flavor_id": ""}, 400, "Malformed parameter flavor_id"),
        ({"flavor_id": "x" * 256}, 400, "Malformed parameter flavor_id"),
        ({"flavor_id": 7}, 400, "Malformed parameter flavor_id"),
        ({"flavor_id": "nobodys"}, 404, "Object with {'flavor_id': 'nobodys'} not found"),
        ({"affinity": "True"}, 409, "Affinity not supported yet"),
        ({"amount": 100}, 409, "Not enough hosts available"),
        ({"vcpus": 1}, 400, "Unknown parameter vcpus"),
        ({"resource_properties": '["==", "$x", "1"]'}, 400, "Malformed parameter resource_properties"),
    ],
)
def test_bad_input_for_flavors(member: Person, changes: Body, status: int, said: str) -> None:
    assert said in refused(member, status, {**FLAVOR, **changes})


def test_a_sleeping_server_has_no_size(member: Person, climate: Climate) -> None:
    cloud = cast("FakeCloud", climate.cloud)
    server = cloud.boot("project", status="RESERVED")
    lease = member.lease(reservations=[{"resource_type": "virtual:instance", "resource_id": server}])
    change = {"reservations": [{"id": lease["reservations"][0]["id"], "vcpus": 2}]}
    said = member.done(member("PUT", f"/leases/{lease['id']}", change), 409)
    assert said["error_message"] == "vcpus cannot be updated"


def test_who_holds_what_is_in_the_calendar(member: Person, admin: Person) -> None:
    lease = member.lease(reservations=[{**ROOM, "amount": 1}])
    rows = admin.get("/os-hosts/allocations")["allocations"]
    assert [row["reservations"][0]["lease_id"] for row in rows if row["reservations"]] == [lease["id"]]
