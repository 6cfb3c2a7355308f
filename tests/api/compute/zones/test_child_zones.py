"""The registry of child zones over the API."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from climate.compute.zones import polling
from tests.compute.zones.tree import Tree, Zone
from tests.flask_apps import app_of
from tests.identity.identity_factory import Asker

FRED = {"api_url": "http://example.com", "username": "fred", "password": "fubar-123"}


@pytest.fixture
def parent(lone: Tree) -> Zone:
    return lone["parent"]


def added(zone: Zone, **changes: Any) -> Any:
    answer = zone.ask("POST", "/zones", {"zone": {**FRED, **changes}})
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.get_json()["zone"]


def test_zn_4_add_answers_without_contact_and_without_credentials(parent: Zone) -> None:
    assert added(parent) == {"id": 1, "api_url": "http://example.com", "weight_offset": 0.0, "weight_scale": 1.0}


def test_password_is_sealed_and_never_reported(
    parent: Zone, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    added(parent)
    with parent.compute.engine.connect() as conn:
        kept = conn.execute(text("SELECT password FROM compute_zones")).scalar_one()
    assert "fubar" not in kept
    assert parent.compute.zones.unseal(kept) == "fubar-123"
    told = [parent.ask("GET", path).get_data(as_text=True) for path in ("/zones", "/zones/detail", "/zones/1")]
    told += [parent.ask("PUT", "/zones/1", {"zone": {"username": "zeb", "password": "sneaky"}}).get_data(as_text=True)]
    polling.poll(parent.compute)  # of a child that cannot be reached: it is logged
    told += [caplog.text, *capsys.readouterr()]
    assert "child zone not polled" in "".join(told)
    assert not any(word in text for text in told for word in ("fubar", "sneaky", "fred", "zeb", kept))


def test_zn_5_change_keeps_the_other_fields(parent: Zone) -> None:
    added(parent)
    answer = parent.ask("PUT", "/zones/1", {"zone": {"username": "zeb", "password": "sneaky"}})
    expected = {"id": 1, "api_url": "http://example.com", "weight_offset": 0.0, "weight_scale": 1.0}
    assert answer.get_json() == {"zone": expected}
    answer = parent.ask("PUT", "/zones/1", {"zone": {"weight_offset": 5, "weight_scale": 2.5}})
    assert answer.get_json() == {"zone": expected | {"weight_offset": 5.0, "weight_scale": 2.5}}
    assert parent.ask("PUT", "/zones/1", {"zone": {}}).get_json()["zone"]["weight_scale"] == 2.5


def test_changed_url_forgets_what_the_old_one_reported(parent: Zone) -> None:
    added(parent)
    with parent.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_zones SET name = 'old', is_active = false, attempts = 7, last_error = 'x'"))
    parent.ask("PUT", "/zones/1", {"zone": {"api_url": "http://example.org"}})
    (seen,) = parent.ask("GET", "/zones/detail").get_json()["zones"]
    assert (seen["name"], seen["is_active"], seen["attempts"], seen["last_error"]) == (None, True, 0, None)


def test_zn_2_and_zn_17_list_shows_children_in_pages(parent: Zone) -> None:
    added(parent)
    added(parent, api_url="http://example.org")
    zones = parent.ask("GET", "/zones").get_json()["zones"]
    assert [zone["api_url"] for zone in zones] == ["http://example.com", "http://example.org"]
    assert parent.ask("GET", "/zones?offset=1&limit=1").get_json() == {"zones": zones[1:]}
    for query in ("limit=0", "limit=5000", "offset=0"):
        assert len(parent.ask("GET", f"/zones?{query}").get_json()["zones"]) == 2
    for query in ("limit=-1", "offset=x", "limit=1.5", "offset=", "limit=²"):
        assert parent.ask("GET", f"/zones?{query}").status_code == 400


def test_remove_forgets_the_child(parent: Zone) -> None:
    added(parent)
    assert parent.ask("DELETE", "/zones/1").get_json() == {}
    assert parent.ask("GET", "/zones").get_json() == {"zones": []}
    assert parent.ask("DELETE", "/zones/1").status_code == 404


@pytest.mark.parametrize("zone_id", ["7", "x", "-1", "1.0", "99999999999999999999", "２", "%00"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_unknown_zones_are_not_found(parent: Zone, method: str, zone_id: str) -> None:
    body = {"zone": {"username": "u"}} if method == "PUT" else None
    assert parent.ask(method, f"/zones/{zone_id}", body).status_code == 404


@pytest.mark.parametrize(
    "changes",
    [
        {"api_url": "ftp://example.com"},
        {"api_url": "http://u:p@example.com"},
        {"api_url": "http://parent/compute/v2.1/"},
        {"api_url": "http://parent"},
        {"api_url": "HTTP://PARENT:80/"},
        {"username": ""},
        {"username": 5},
        {"password": ""},
        {"password": "x" * 2000},
        {"weight_scale": "much"},
        {"weight_scale": True},
        {"weight_offset": 1e300},
        {"is_active": True},
        {"id": 1},
    ],
)
def test_unusable_fields_are_refused(parent: Zone, changes: dict[str, Any]) -> None:
    for method, path in (("POST", "/zones"), ("PUT", "/zones/1")):
        answer = parent.ask(method, path, {"zone": {**FRED, **changes}})
        assert answer.status_code == 400
        assert "fubar" not in answer.get_data(as_text=True)
    assert parent.ask("GET", "/zones").get_json() == {"zones": []}


@pytest.mark.parametrize("left_out", ["api_url", "username", "password"])
def test_required_fields_are_required(parent: Zone, left_out: str) -> None:
    body = {key: value for key, value in FRED.items() if key != left_out}
    answer = parent.ask("POST", "/zones", {"zone": body})
    assert answer.status_code == 400
    assert left_out in answer.get_json()["badRequest"]["message"]


def test_same_url_twice_is_a_conflict(parent: Zone) -> None:
    added(parent)
    added(parent, api_url="http://example.org")
    assert parent.ask("POST", "/zones", {"zone": FRED}).status_code == 409
    assert parent.ask("PUT", "/zones/2", {"zone": {"api_url": FRED["api_url"]}}).status_code == 409


def test_only_administrators_are_served(parent: Zone) -> None:
    for method, path in (("GET", "/zones"), ("GET", "/zones/info"), ("GET", "/zones/1"), ("DELETE", "/zones/1")):
        assert parent.ask(method, path, user="demo").status_code == 403


def test_without_the_admin_api_there_are_no_routes(parent: Zone) -> None:
    settings = replace(parent.deployment.settings, allow_admin_api=False)
    asker = Asker(app_of(replace(parent.deployment, settings=settings)), parent.token("admin"))
    for path in ("/zones", "/zones/detail", "/zones/info", "/zones/1"):
        assert asker.ask("GET", f"/compute/v2.1{path}").status_code == 404


def test_zn_1_static_capabilities_are_shown_as_they_are_set(parent: Zone) -> None:
    zones = replace(parent.compute.zones, name="darksecret", capabilities={"cap1": "a;b", "cap2": "c;d"})
    changed = replace(parent.deployment, compute=replace(parent.compute, zones=zones))
    asker = Asker(app_of(changed), parent.token("admin"))
    answer = asker.ask("GET", "/compute/v2.1/zones/info")
    assert answer.get_json() == {"zone": {"name": "darksecret", "cap1": "a;b", "cap2": "c;d"}}


REGISTERED = {"id", "api_url", "weight_offset", "weight_scale"}
STATE = {"name", "is_active", "capabilities"}
POLLS = {"attempts", "last_seen", "last_error", "last_error_at"}
EXPORTED = {"name", "hypervisor"}
"""Keys that leave a zone.  A key that is added to an answer has to be added here on purpose."""
OF_BUILDS = {"POST /zones/select", "POST /zones/boot", "GET /zones/builds/<build_id>"}
"""Tests of selection, provisioning and placing compare the keys of these with a list, in tests/compute/zones."""


def test_only_listed_keys_leave_a_zone(parent: Zone) -> None:
    added(parent)
    keys = {
        "GET /zones": [set(one) for one in parent.ask("GET", "/zones").get_json()["zones"]],
        "GET /zones/detail": [set(one) for one in parent.ask("GET", "/zones/detail").get_json()["zones"]],
        "GET /zones/1": [set(parent.ask("GET", "/zones/1").get_json()["zone"])],
        "GET /zones/info": [set(parent.ask("GET", "/zones/info").get_json()["zone"])],
        "POST /zones": [set(added(parent, api_url="http://example.org"))],
        "PUT /zones/1": [set(parent.ask("PUT", "/zones/1", {"zone": {"weight_scale": 1}}).get_json()["zone"])],
        "DELETE /zones/1": [set(parent.ask("DELETE", "/zones/1").get_json())],
    }
    routes = {
        f"{method} {rule.rule.removeprefix('/compute/v2.1').replace('<zone_id>', '1')}"
        for rule in parent.app.url_map.iter_rules()
        if rule.rule.startswith("/compute/v2.1/zones")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert set(keys) | OF_BUILDS == routes
    assert keys == {
        "GET /zones": [REGISTERED | STATE],
        "GET /zones/detail": [REGISTERED | STATE | POLLS],
        "GET /zones/1": [REGISTERED],
        "GET /zones/info": [EXPORTED],
        "POST /zones": [REGISTERED],
        "PUT /zones/1": [REGISTERED],
        "DELETE /zones/1": [set()],
    }


def test_parents_do_not_see_children(parent: Zone) -> None:
    added(parent)
    forwarded = {"X-Zone-Chain": "grandparent", "X-Zone-Seconds": "3"}
    for path in ("/zones", "/zones/detail", "/zones/1"):
        assert parent.ask("GET", path, headers=forwarded).status_code == 403
    assert parent.ask("GET", "/zones/info", headers=forwarded).status_code == 200


def test_request_that_comes_back_is_refused(parent: Zone) -> None:
    own = parent.compute.zones.own_id()
    for path in ("/zones/info", "/servers/detail", "/flavors"):
        for chain in (own, f"a,{own},b", ",".join(f"z{hop}" for hop in range(9))):
            assert parent.ask("GET", path, headers={"X-Zone-Chain": chain}).status_code == 508
        assert parent.ask("GET", path, headers={"X-Zone-Chain": "a,b"}).status_code == 200
        assert parent.ask("GET", path, user="demo", headers={"X-Zone-Chain": own}).status_code in (200, 403)


@pytest.mark.parametrize("headers", [{"X-Zone-Chain": "a,,b"}, {"X-Zone-Chain": "a", "X-Zone-Seconds": "soon"}])
def test_unreadable_chains_are_refused(parent: Zone, headers: dict[str, str]) -> None:
    assert parent.ask("GET", "/zones/info", headers=headers).status_code == 400
