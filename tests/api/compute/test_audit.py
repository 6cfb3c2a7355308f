"""Changes of the bundled cloud by administrators are in the audit trail, with who made them and without secrets."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import text

from climate.store.journal import audit_trail
from climate.store.journal.audit_trail import AuditQuery
from tests.api.compute.api_clients import Person, World

V2 = "/compute/v2.1"


def told(there: World, kind: str) -> list[tuple[Any, ...]]:
    """Action, before and after of all entries of a kind, the oldest first; each by the administrator."""
    with there.here.compute.engine.connect() as conn:
        found = [one for one in audit_trail.listed(conn, AuditQuery()) if one.change.kind == kind][::-1]
    assert {one.author for one in found} <= {"admin-user"}
    assert all(one.request_id.startswith("req-") for one in found)
    return [(str(one.change.action), one.change.before, one.change.after) for one in found]


def done(admin: Person, requests: Sequence[tuple[str, str, Any]]) -> list[Any]:
    answers = []
    for method, path, body in requests:
        answer = admin(method, V2 + path, body)
        assert answer.status_code < 300, answer.get_data(as_text=True)
        answers.append(answer.get_json(silent=True))
    return answers


def test_aggregates(there: World, admin: Person) -> None:
    made = done(admin, [("POST", "/os-aggregates", {"aggregate": {"name": "fast"}})])[0]["aggregate"]["id"]
    path = f"/os-aggregates/{made}"
    done(
        admin,
        [
            ("PUT", path, {"aggregate": {"name": "faster"}}),
            ("POST", f"{path}/action", {"add_host": {"host": "std-1"}}),
            ("POST", f"{path}/action", {"set_metadata": {"metadata": {"ssd": "true"}}}),
            ("POST", f"{path}/action", {"remove_host": {"host": "std-1"}}),
            ("DELETE", path, None),
        ],
    )
    assert told(there, "aggregate") == [
        ("created", None, {"name": "fast", "metadata": {}, "hosts": []}),
        ("changed", {"name": "fast"}, {"name": "faster"}),
        ("changed", {"hosts": []}, {"hosts": ["std-1"]}),
        ("changed", {"metadata": {}}, {"metadata": {"ssd": "true"}}),
        ("changed", {"hosts": ["std-1"]}, {"hosts": []}),
        ("deleted", {"name": "faster", "metadata": {"ssd": "true"}, "hosts": []}, None),
    ]


def test_flavors(there: World, admin: Person) -> None:
    flavor = {"id": "big", "name": "big", "vcpus": 2, "ram": 512, "disk": 1}
    done(
        admin,
        [
            ("POST", "/flavors", {"flavor": flavor}),
            ("POST", "/flavors/big/os-extra_specs", {"extra_specs": {"a": "b"}}),
            ("DELETE", "/flavors/big/os-extra_specs/a", None),
            ("DELETE", "/flavors/big", None),
        ],
    )
    created, added, dropped, deleted = told(there, "flavor")
    assert (created[0], created[2]["vcpus"], deleted[0], deleted[1]["name"]) == ("created", 2, "deleted", "big")
    assert [added, dropped] == [
        ("changed", {"extra_specs": {}}, {"extra_specs": {"a": "b"}}),
        ("changed", {"extra_specs": {"a": "b"}}, {"extra_specs": {}}),
    ]


def test_quotas(there: World, admin: Person) -> None:
    done(
        admin,
        [
            ("PUT", "/os-quota-sets/project", {"quota_set": {"cores": 7}}),
            ("PUT", "/os-quota-sets/project", {"quota_set": {"cores": 7}}),
            ("DELETE", "/os-quota-sets/project", None),
        ],
    )
    assert told(there, "quota") == [
        ("changed", {"cores": 200}, {"cores": 7}),
        ("changed", {"cores": 7}, {"cores": 200}),
    ]


def test_services_and_nodes(there: World, admin: Person) -> None:
    host = {"host": "compute-1", "binary": "nova-compute"}
    done(
        admin,
        [
            ("PUT", "/os-services/disable-log-reason", host | {"disabled_reason": "noise"}),
            ("PUT", "/os-services/enable", host),
            ("PUT", "/os-hosts/std-1", {"maintenance_mode": "enable", "reason": "fans"}),
        ],
    )
    off, on = {"enabled": False, "disabled_reason": "noise"}, {"enabled": True, "disabled_reason": None}
    assert told(there, "compute_service") == [("changed", on, off), ("changed", off, on)]
    assert told(there, "compute_node") == [("changed", {"maintenance": None}, {"maintenance": "fans"})]


SECRET = "hush-hush-and-long-enough"


NEIGHBOURS = {
    "zone": {"api_url": "http://child.example:8700/compute/v2.1", "username": "u", "password": SECRET},
    "cell": {"name": "c1", "type": "child", "rpc_host": "h", "password": SECRET, "secret": SECRET},
}
PATHS = {"zone": "/zones", "cell": "/os-cells"}


@pytest.mark.parametrize("kind", list(NEIGHBOURS))
def test_secrets_of_neighbours_are_not_reported(there: World, admin: Person, kind: str) -> None:
    made = done(admin, [("POST", PATHS[kind], {kind: NEIGHBOURS[kind]})])[0][kind]
    path = f"{PATHS[kind]}/{made.get('id', made.get('name'))}"
    changed = {"password": f"{SECRET}2", "weight_offset": 2.0}
    done(admin, [("PUT", path, {kind: changed}), ("DELETE", path, None)])
    created, altered, deleted = told(there, kind)
    assert (created[0], created[2]["password"]) == ("created", "set")
    before = {"weight_offset": 0.0, "password": None}
    assert altered == ("changed", before, {"weight_offset": 2.0, "password": "changed"})
    assert (deleted[0], deleted[1]["weight_offset"], "password" in deleted[1]) == ("deleted", 2.0, False)
    with there.here.compute.engine.connect() as conn:
        assert not [body for body in conn.scalars(text("SELECT body::text FROM journal")) if "hush-hush" in body]


def test_what_is_refused_is_not_reported(there: World, admin: Person) -> None:
    assert admin("DELETE", f"{V2}/os-aggregates/9999", None).status_code == 404
    assert admin("POST", f"{V2}/flavors/t/os-extra_specs", {"extra_specs": {"": ""}}).status_code == 400
    assert told(there, "aggregate") == told(there, "flavor") == []
