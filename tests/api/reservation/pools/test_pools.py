"""Pools over HTTP: what is shown of them, moves, and bad input."""

from typing import Any

import pytest
from flask import Flask

from climate.cloud import CloudError
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.service.host_operations import pool_scaling
from tests.api.reservation.api_clients import Person, reservation, run_due, written
from tests.conftest import Clock, cloud_host


def moves(person: Person, pool: str, *hosts: str, query: str = "", **more: Any) -> Any:
    return person("POST", f"/pools/{pool}/moves{query}", {"hosts": list(hosts), **more})


def test_pools_are_listed_and_shown(admin: Person, member: Person, climate: Climate) -> None:
    member.lease(start_date="now", end_date="2030-01-01 14:00")
    run_due(climate)
    listed = admin.get("/pools")["pools"]
    assert [one["name"] for one in listed] == [
        "multi-tenant",
        "reservation",
        "lent",
        "recycling",
        "draining",
        "cleaning",
        "maintenance",
        "failed",
    ]
    kept = admin.get("/pools/reservation")["pool"]
    assert (
        kept
        == listed[1]
        == {
            "name": "reservation",
            "hosts": 7,
            "unregistered": 0,
            "reservable": 7,
            "promised_now": 0,
            "promised_next_day": 0,
            "drifted": 0,
            "terms": {
                "target": 0,
                "on_end": "terminate",
                "grace_period": 0,
                "recycle_deadline": "terminate",
                "idle": "keep",
                "horizon": 0,
                "spare": 2,
                "margin": 25,
                "slack": 2,
                "dwell": 3600,
                "drain": True,
                "move_servers": False,
                "own": [],
            },
        }
    )
    assert (listed[2]["hosts"], listed[2]["promised_now"], listed[2]["terms"]) == (1, 1, None)


def test_terms_are_set_tried_and_unset(admin: Person) -> None:
    wish = {"target": 6, "on_end": "recycle"}
    tried = admin.done(admin("PUT", "/pools/reservation?dry_run=true", wish))["pool"]["terms"]
    assert (tried["target"], tried["own"]) == (6, ["on_end", "target"])
    assert admin.get("/pools/reservation")["pool"]["terms"]["own"] == []
    assert admin.done(admin("PUT", "/pools/reservation", wish))["pool"]["terms"] == tried
    unset = admin.done(admin("PUT", "/pools/reservation", {"on_end": None}))["pool"]["terms"]
    assert (unset["on_end"], unset["own"]) == ("terminate", ["target"])


def test_the_plan_says_what_is_wanted_and_what_is_done(
    admin: Person, member: Person, climate: Climate, clock: Clock
) -> None:
    wish = {"horizon": 172800, "spare": 1, "margin": 50, "slack": 1, "dwell": 3600, "drain": False}
    terms = admin.done(admin("PUT", "/pools/reservation", wish))["pool"]["terms"]
    assert {name: terms[name] for name in wish} == wish
    assert terms["own"] == sorted(wish)
    member.lease(reservations=[reservation(min=3, max=3)])
    plan = admin.get("/pools/reservation/plan")["plan"]
    assert {name: plan[name] for name in ("managed", "hosts", "draining", "promised", "spare", "wanted", "most")} == {
        "managed": True, "hosts": 8, "draining": 0, "promised": 3, "spare": 2, "wanted": 5, "most": 6,
    }  # fmt: skip
    assert (plan["promised_at"], plan["moves"], plan["lacking"]) == ("2030-01-02T10:00:00.000000", [], 0)
    assert {one["reason"] for one in plan["kept"] if one["reason"].startswith("promised")} == {"promised to a lease"}
    assert [one["hosts"] for one in plan["backlog"]] == [3, 0]
    clock.forward(hours=1)
    found = admin.get("/pools/reservation/plan")["plan"]
    assert [(one["step"], one["pool"]) for one in found["moves"]] == [("release", "reservation")] * 2
    assert pool_scaling.run_round(climate) == 2
    assert admin.get("/pools/multi-tenant")["pool"]["hosts"] == 2
    assert member("GET", "/pools/reservation/plan").status_code == 403


def test_the_hosts_of_a_pool_and_its_backlog(admin: Person, member: Person, climate: Climate) -> None:
    lease = member.lease("now", start_date="now", end_date="2030-01-01 14:00")
    later = member.lease("later", start_date="2030-01-03 10:00", end_date="2030-01-03 11:00")
    run_due(climate)
    (lent,) = admin.get("/pools/lent/hosts?servers=true")["hosts"]
    assert (lent["lease_id"], lent["project_id"], lent["servers"]) == (lease["id"], "project", [])
    assert lent["reservation_id"] == lease["reservations"][0]["id"]
    page = admin.get("/pools/reservation/hosts?limit=3")
    assert (len(page["hosts"]), page["hosts"][0]["servers"]) == (3, None)
    assert "marker=" in page["hosts_links"][0]["href"]
    rest = admin.get(f"/pools/reservation/hosts?marker={page['hosts'][-1]['id']}")["hosts"]
    assert len(rest) == 4
    plan = admin.get("/pools/reservation/backlog?from=2030-01-02 00:00&to=2030-01-04 00:00")
    assert (plan["from"], plan["to"]) == ("2030-01-02T00:00:00.000000", "2030-01-04T00:00:00.000000")
    promises = [
        one for host in plan["backlog"] + admin.get("/pools/lent/backlog")["backlog"] for one in host["promises"]
    ]
    assert {one["lease_id"] for one in promises} == {lease["id"], later["id"]}
    assert {one["kind"] for one in promises} == {"lease"}


def test_maintenance_without_an_end_has_none(admin: Person) -> None:
    admin.done(moves(admin, "maintenance", "1", reason="new memory"))
    (host,) = admin.get("/pools/maintenance/backlog")["backlog"]
    (promise,) = host["promises"]
    assert (promise["kind"], promise["end"], promise["reason"]) == ("maintenance", None, "new memory")


def test_hosts_are_moved(admin: Person, climate: Climate) -> None:
    (tried,) = admin.done(moves(admin, "multi-tenant", "h1", query="?dry_run=true"))["moves"]
    assert (tried["moved"], tried["from"], tried["host"]["pool"]) == (True, "reservation", "multi-tenant")
    assert admin.get("/pools/multi-tenant")["pool"]["hosts"] == 0
    done = admin.done(moves(admin, "multi-tenant", "h1", "2", reason="for all"))["moves"]
    assert [(one["host"]["name"], one["host"]["pool"], one["host"]["reason"]) for one in done] == [
        ("h1", "multi-tenant", "for all"),
        ("h2", "multi-tenant", "for all"),
    ]
    (again,) = admin.done(moves(admin, "multi-tenant", "1"))["moves"]
    assert (again["moved"], again["host"]["version"]) == (False, 2)
    elsewhere = moves(admin, "failed", "1", "3", **{"from": "reservation"})
    assert elsewhere.status_code == 409
    assert "h1 (multi-tenant)" in elsewhere.json["error_message"]
    told = admin.get("/os-hosts/1/history")["history"]
    assert [(one["kind"], one["actor"]["user_id"]) for one in told] == [
        ("HostEnrolled", "admin-user"),
        ("HostMoved", "admin-user"),
    ]
    assert told[1]["body"]["reason"] == "for all"


def test_a_move_that_breaks_a_lease_is_refused_with_it_and_forced(
    admin: Person, member: Person, climate: Climate, clock: Clock
) -> None:
    lease = member.lease(start_date="now", end_date="2030-01-01 14:00")
    run_due(climate)
    (lent,) = admin.get("/pools/lent/hosts")["hosts"]
    refused = moves(admin, "failed", lent["id"])
    assert (refused.status_code, refused.json["error_code"]) == (409, 409)
    assert lease["id"] in refused.json["error_message"]
    assert refused.json["leases"] == [
        {"host": lent["name"], "lease_id": lease["id"], "lease_name": "l", "project_id": "project"}
    ]
    (preview,) = admin.done(moves(admin, "failed", lent["id"], force=True, query="?dry_run=true"))["moves"]
    assert [one["lease_id"] for one in preview["leases"]] == [lease["id"]]
    admin.done(moves(admin, "failed", lent["id"], force=True))
    run_due(climate)
    assert member.get(f"/leases/{lease['id']}")["lease"]["reservations"][0]["resources_changed"]
    assert lent["id"] not in {one["id"] for one in admin.get("/pools/lent/hosts")["hosts"]}


def test_a_host_is_closed_and_opened(admin: Person) -> None:
    closed = admin.done(admin("PUT", "/os-hosts/3/reservable", {"reservable": False, "reason": "to be retired"}))
    assert closed["host"]["reservable"] is False
    assert admin.get("/os-hosts/3")["host"]["reservable"] is False
    admin.done(admin("PUT", "/os-hosts/3/reservable?dry_run=true", {"reservable": True}))
    assert admin.get("/pools/reservation")["pool"]["reservable"] == 7
    assert admin.get("/os-hosts/3/history")["history"][-1]["body"]["reason"] == "to be retired"


def test_a_host_with_servers_waits_and_says_for_what(admin: Person, climate: Climate) -> None:
    cloud = climate.cloud
    assert isinstance(cloud, FakeCloud)
    admin.done(moves(admin, "multi-tenant", "1"))
    server = cloud.boot("p", "h1")
    refused = moves(admin, "reservation", "1")
    assert refused.status_code == 409
    assert "servers are still on h1" in refused.json["error_message"]
    (shown,) = admin.get("/pools/multi-tenant/hosts?servers=true")["hosts"]
    assert shown["servers"] == [{"id": server, "name": "server", "project_id": "p", "status": "ACTIVE"}]


def test_a_host_that_nobody_registered_is_seen_and_registered_with_its_servers(
    admin: Person, member: Person, climate: Climate
) -> None:
    cloud = climate.cloud
    assert isinstance(cloud, FakeCloud)
    cloud.set_hosts([*cloud.hosts.values(), cloud_host("n1")])
    server = cloud.boot("p", "n1")
    pool = admin.get("/pools/multi-tenant")["pool"]
    assert (pool["hosts"], pool["unregistered"]) == (1, 1)
    there = {"id": server, "name": "server", "project_id": "p", "status": "ACTIVE"}
    for query, servers in (("", None), ("?servers=true", [there]), ("?limit=1", None)):
        answer = admin.get(f"/pools/multi-tenant/hosts{query}")
        (one,) = answer["unregistered"]
        assert (one["name"], one["server_count"], one["servers"]) == ("n1", 1, servers)
    assert "unregistered" not in admin.get("/pools/multi-tenant/hosts?marker=1")
    assert "unregistered" not in admin.get("/pools/reservation/hosts")
    assert member("POST", "/os-hosts?drain=true", {"name": "n1"}).status_code == 403
    refused = admin("POST", "/os-hosts", {"name": "n1"})
    assert refused.status_code == 409
    assert "drain=true" in refused.json["error_message"]
    assert admin("POST", "/os-hosts?drain=perhaps", {"name": "n1"}).status_code == 400
    admin.done(admin("POST", "/os-hosts?drain=true&dry_run=true", {"name": "n1"}))
    assert admin.get("/pools/draining")["pool"]["hosts"] == 0
    made = admin.done(admin("POST", "/os-hosts?drain=true", {"name": "n1", "gpu": "a100"}), 201)["host"]
    (waiting,) = admin.get("/pools/draining/hosts")["hosts"]
    assert (waiting["id"], waiting["servers"], waiting["server_count"]) == (made["id"], [there], 1)
    cloud.failures = {"ordinary_hosts": CloudError("away")}
    assert admin.get("/pools/multi-tenant")["pool"]["unregistered"] is None
    assert admin.get("/pools/multi-tenant/hosts")["unregistered"] is None


POOLS = "multi-tenant, reservation, lent, recycling, draining, cleaning, maintenance, failed"

REFUSED: dict[str, tuple[str, str, Any, int, str]] = {
    "an unknown pool": ("GET", "/pools/nope", None, 404, f"'nope'; there are {POOLS}"),
    "hosts of an unknown pool": ("GET", "/pools/nope/hosts", None, 404, POOLS),
    "backlog of an unknown pool": ("GET", "/pools/nope/backlog", None, 404, POOLS),
    "terms of an unknown pool": ("PUT", "/pools/nope", {"target": 1}, 404, POOLS),
    "terms of a pool without": ("PUT", "/pools/lent", {"target": 1}, 400, "Only the pool reservation"),
    "no terms": ("PUT", "/pools/reservation", {}, 400, "Nothing to change"),
    "an unknown term": ("PUT", "/pools/reservation", {"size": 1}, 400, "known are drain, dwell"),
    "a negative target": ("PUT", "/pools/reservation", {"target": -1}, 400, "target"),
    "a target of many": ("PUT", "/pools/reservation", {"target": 10**12}, 400, "target"),
    "a true target": ("PUT", "/pools/reservation", {"target": True}, 400, "target"),
    "a target of words": ("PUT", "/pools/reservation", {"target": "many"}, 400, "target"),
    "half a target": ("PUT", "/pools/reservation", {"target": 1.5}, 400, "target"),
    "a negative horizon": ("PUT", "/pools/reservation", {"horizon": -1}, 400, "horizon"),
    "a horizon of ages": ("PUT", "/pools/reservation", {"horizon": 366 * 86400 + 1}, 400, "horizon"),
    "a margin of words": ("PUT", "/pools/reservation", {"margin": "half"}, 400, "margin"),
    "a margin of many": ("PUT", "/pools/reservation", {"margin": 1001}, 400, "margin"),
    "half a spare": ("PUT", "/pools/reservation", {"spare": 0.5}, 400, "spare"),
    "a word for drain": ("PUT", "/pools/reservation", {"drain": "yes"}, 400, "drain"),
    "a number for drain": ("PUT", "/pools/reservation", {"drain": 1}, 400, "drain"),
    "the plan of an unknown pool": ("GET", "/pools/nope/plan", None, 404, POOLS),
    "the plan of another pool": ("GET", "/pools/lent/plan", None, 404, "the pool reservation has one"),
    "a plan with a parameter": ("GET", "/pools/reservation/plan?x=1", None, 400, "x"),
    "an unknown end": ("PUT", "/pools/reservation", {"on_end": "burn"}, 400, "on_end"),
    "a long grace": ("PUT", "/pools/reservation", {"grace_period": 86401}, 400, "from 0 to 86400"),
    "a move to an unknown pool": ("POST", "/pools/nope/moves", {"hosts": ["1"]}, 400, POOLS),
    "a move to the lent": ("POST", "/pools/lent/moves", {"hosts": ["1"]}, 400, "by an admin; allowed are multi-tenant"),
    "a move to those recycling": ("POST", "/pools/recycling/moves", {"hosts": ["1"]}, 400, "by an admin"),
    "no hosts": ("POST", "/pools/failed/moves", {"reason": "x"}, 400, "Missing parameter hosts"),
    "an empty list of hosts": ("POST", "/pools/failed/moves", {"hosts": []}, 400, "hosts"),
    "a text of hosts": ("POST", "/pools/failed/moves", {"hosts": "1"}, 400, "hosts"),
    "numbers of hosts": ("POST", "/pools/failed/moves", {"hosts": [1]}, 400, "hosts"),
    "many hosts": ("POST", "/pools/failed/moves", {"hosts": ["1"] * 1001}, 400, "hosts"),
    "unknown hosts": ("POST", "/pools/failed/moves", {"hosts": ["1", "h99", "' OR 1=1"]}, 404, "'h99'"),
    "a long reason": ("POST", "/pools/failed/moves", {"hosts": ["1"], "reason": "x" * 256}, 400, "reason"),
    "a reason with U+0000": ("POST", "/pools/failed/moves", {"hosts": ["1"], "reason": "a\0"}, 400, "U+0000"),
    "a word for force": ("POST", "/pools/failed/moves", {"hosts": ["1"], "force": "yes"}, 400, "force"),
    "from an unknown pool": ("POST", "/pools/failed/moves", {"hosts": ["1"], "from": "x"}, 400, "from"),
    "a key that is none": ("POST", "/pools/failed/moves", {"hosts": ["1"], "project_id": "x"}, 400, "project_id"),
    "a move from elsewhere": ("POST", "/pools/failed/moves", {"hosts": ["1"], "from": "lent"}, 409, "h1 (reservation)"),
    "a limit of none": ("GET", "/pools/failed/hosts?limit=0", None, 400, "limit"),
    "a marker of words": ("GET", "/pools/failed/hosts?marker=x", None, 400, "marker"),
    "a marker of nobody": ("GET", "/pools/failed/hosts?marker=99", None, 400, "marker 99"),
    "an unknown parameter": ("GET", "/pools?x=1", None, 400, "x"),
    "a backlog that ends first": (
        "GET", "/pools/failed/backlog?from=2030-01-02 00:00&to=2030-01-01 00:00", None, 400, "later than `from`",
    ),
    "a backlog of ages": ("GET", "/pools/failed/backlog?to=2199-01-01 00:00", None, 400, "3660 days"),
    "a backlog to no time": ("GET", "/pools/failed/backlog?to=soon", None, 400, "soon is an invalid date"),
    "a word for reservable": ("PUT", "/os-hosts/1/reservable", {"reservable": "no"}, 400, "reservable"),
    "no word on reservable": ("PUT", "/os-hosts/1/reservable", {}, 400, "Missing parameter reservable"),
    "nobody's reservable": ("PUT", "/os-hosts/99/reservable", {"reservable": True}, 404, "99"),
    "nobody's history": ("GET", "/os-hosts/99/history", None, 404, "99"),
    "no host's history": ("GET", "/os-hosts/x/history", None, 404, "x"),
}  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "status", "said"), REFUSED.values(), ids=REFUSED)
def test_bad_input(standing: tuple[Flask, Climate], method: str, path: str, body: Any, status: int, said: str) -> None:
    app, climate = standing
    before = written(climate.engine)
    answer = Person(app, "admin")(method, path, body)
    assert (answer.status_code, answer.json.get("error_code")) == (status, status), answer.json
    assert said in answer.json["error_message"]
    assert written(climate.engine) == before


def test_a_removed_host_has_a_history(admin: Person) -> None:
    admin("DELETE", "/os-hosts/1")
    assert [one["kind"] for one in admin.get("/os-hosts/1/history")["history"]] == ["HostEnrolled", "HostRemoved"]
    assert admin("PUT", "/os-hosts/1/reservable", {"reservable": True}).status_code == 404
