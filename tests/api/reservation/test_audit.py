"""The audit trail over HTTP: each change of an administrator once, with its author, before and after."""

import json
import re
from typing import Any, get_args

import pytest
from sqlalchemy import Engine, event, text

from climate.context import Climate
from climate.domain.audit_trail import FACTS_OF, AuditFact, AuditKind, ObjectChanged
from climate.domain.policy import Caller
from climate.store.journal import audit_trail
from climate.store.tables.leases import AUDITED_KINDS
from tests.api.reservation.api_clients import Person
from tests.conftest import Clock

KEYS = ("author", "kind", "object_id", "action", "before", "after")
WINDOW = {"host_id": "2", "start_date": "2031-01-01 10:00", "end_date": "2031-01-01 12:00", "reason": "new memory"}


def listed(admin: Person, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = admin.get(f"/audit{query}")["audit"]
    return found


def made_since(admin: Person, known: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Entries that were not known, the oldest first."""
    ids = {entry["id"] for entry in known}
    return [tuple(entry[key] for key in KEYS) for entry in reversed(listed(admin)) if entry["id"] not in ids]


def test_each_limit_is_reported_with_what_it_was(admin: Person) -> None:
    known = listed(admin)
    admin.done(admin("PUT", "/limits/project", {"leases": 3}))
    admin.done(admin("PUT", "/limits/project", {"leases": 5, "host_hours": 90}))
    admin.done(admin("PUT", "/limits/default", {"leases": 9}))
    assert admin("DELETE", "/limits/default").status_code == 204
    common = ("admin-user", "limits")
    assert made_since(admin, known) == [
        (*common, "project", "changed", {"leases": None}, {"leases": 3}),
        (*common, "project", "changed", {"leases": 3, "host_hours": None}, {"leases": 5, "host_hours": 90}),
        (*common, "default", "changed", {"leases": None}, {"leases": 9}),
        (*common, "default", "changed", {"leases": 9}, {"leases": None}),
    ]
    assert [entry["project_id"] for entry in listed(admin, "?kind=limits")] == ["default"] * 2 + ["project"] * 2


def test_changes_of_pools_hosts_and_windows_are_reported(admin: Person) -> None:
    known = listed(admin)
    admin.done(admin("PUT", "/pools/reservation", {"target": 2}))
    admin.done(admin("PUT", "/os-hosts/1", {"gpu": "a100"}))
    admin.done(admin("PUT", "/os-hosts/1", {"gpu": "h100", "rack": "4"}))
    admin.done(admin("PUT", "/os-hosts/1/reservable", {"reservable": False, "reason": "noise"}))
    planned = admin.done(admin("POST", "/maintenances", WINDOW), 201)["maintenance"]
    admin.done(admin("PUT", f"/maintenances/{planned['id']}", {"reason": "new disks"}))
    admin.done(admin("PUT", f"/maintenances/{planned['id']}", {"move_servers": True}))
    admin.done(admin("DELETE", f"/maintenances/{planned['id']}"))
    dates = {"start_date": "2031-01-01T10:00:00+00:00", "end_date": "2031-01-01T12:00:00+00:00"}
    window = {"host_id": "2", **dates, "reason": "new memory", "state": "planned", "move_servers": False}
    common = ("admin-user", "maintenance", planned["id"])
    before = {"gpu": "a100", "rack": None}
    assert made_since(admin, known) == [
        ("admin-user", "pool", "reservation", "changed", {"target": None}, {"target": 2}),
        ("admin-user", "capabilities", "1", "changed", {"gpu": None}, {"gpu": "a100"}),
        ("admin-user", "capabilities", "1", "changed", before, {"gpu": "h100", "rack": "4"}),
        ("admin-user", "host", "1", "changed", {"reservable": True}, {"reservable": False, "reason": "noise"}),
        (*common, "created", None, window),
        (*common, "changed", {"reason": "new memory"}, {"reason": "new disks"}),
        (*common, "changed", {"move_servers": False}, {"move_servers": True}),
        (*common, "changed", {"state": "planned"}, {"state": "cancelled"}),
    ]
    assert [entry["name"] for entry in listed(admin, "?kind=capabilities")] == ["h1", "h1"]


def test_changes_of_power_settings_are_reported_without_secrets(admin: Person, engine: Engine) -> None:
    known = listed(admin)
    first = {"driver": "ipmi", "settings": {"address": "192.0.2.9", "username": "root", "password": "hush-hush"}}
    admin.done(admin("PUT", "/os-hosts/1/power", first))
    second = {"driver": "ipmi", "settings": {**first["settings"], "password": "even-more-hushed"}}  # type: ignore[dict-item]
    admin.done(admin("PUT", "/os-hosts/1/power", second))
    admin.done(admin("PUT", "/os-hosts/1/power", {"driver": "memory", "settings": {"shutdown_seconds": 60}}))
    assert admin("DELETE", "/os-hosts/1/power").status_code == 204
    told = made_since(admin, known)
    assert [(entry[1], entry[2], entry[3]) for entry in told] == [
        ("power", "1", "created"),
        ("power", "1", "changed"),
        ("power", "1", "changed"),
        ("power", "1", "deleted"),
    ]
    assert told[0][4] is None
    assert told[0][5]["secrets"] is True
    assert (told[2][4]["driver"], told[2][5]["driver"]) == ("ipmi", "memory")
    assert told[3][4]["driver"] == "memory"
    with engine.connect() as conn:
        journal = "".join(map(str, conn.scalars(text("SELECT body FROM journal"))))
    assert "hush" not in journal + json.dumps(listed(admin))


def test_hosts_are_notified_when_registered_and_removed(admin: Person) -> None:
    known = listed(admin)
    assert admin("DELETE", "/os-hosts/4").status_code in (200, 204)
    host = admin.done(admin("POST", "/os-hosts", {"name": "h4", "rack": "9"}), 201)["host"]
    told = made_since(admin, known)
    assert ("admin-user", "host", "4", "deleted", {"name": "h4"}, None) in told
    (created,) = [entry for entry in told if entry[3] == "created"]
    assert (created[1], created[2]) == ("host", host["id"])
    assert created[5]["capabilities"]["rack"] == "9"


@pytest.mark.parametrize("kind", sorted({*AuditKind} - {*FACTS_OF}))
def test_an_object_without_facts_of_its_own_is_reported(admin: Person, engine: Engine, clock: Clock, kind: str) -> None:
    author = Caller("ada", "her-project", request_id="req-7")
    known = listed(admin)
    for action, before, after in (("created", None, {"x": 1}), ("changed", {"x": 1}, {"x": 2}), ("deleted", {}, None)):
        with engine.begin() as conn:
            audit_trail.record(conn, author, ObjectChanged(clock.time, kind, "o1", action, "one", "p1", before, after))
    assert made_since(admin, known) == [
        ("ada", kind, "o1", "created", None, {"x": 1}),
        ("ada", kind, "o1", "changed", {"x": 1}, {"x": 2}),
        ("ada", kind, "o1", "deleted", {}, None),
    ]
    last = listed(admin)[0]
    assert (last["name"], last["project_id"], last["author_project_id"]) == ("one", "p1", "her-project")
    assert last["request_id"] == "req-7"
    assert len(listed(admin, f"?kind={kind}&object=o1&author=ada&project=p1")) == 3


def test_conditions_choose_among_changes(admin: Person, engine: Engine, clock: Clock) -> None:
    admin.done(admin("PUT", "/limits/project", {"leases": 3}))
    admin.done(admin("PUT", "/os-hosts/1", {"rack": "4"}))
    with engine.begin() as conn:
        change = ObjectChanged(clock.time, "role", "u1", "created", "ada", "project", None, {"role": "member"})
        audit_trail.record(conn, Caller("ben", "p"), change)
    at = {entry["kind"]: entry["at"] for entry in listed(admin)}

    def kinds(query: str) -> list[str]:
        return [entry["kind"] for entry in listed(admin, query)]

    assert kinds("?project=project") == ["role", "limits"]
    assert kinds("?author=ben") == ["role"]
    assert kinds("?object=project") == ["limits"]
    assert kinds("?object=u1") == ["role"]
    assert kinds("?object=h1") == kinds("?object=1") == ["capabilities", "host"]
    assert kinds(f"?since={at['role']}Z") == ["role"]
    assert kinds(f"?until={at['role']}Z&since={at['limits']}Z") == ["capabilities", "limits"]
    assert kinds("?kind=pool") == kinds("?object=nobody") == kinds("?object=" + "9" * 40) == []


@pytest.mark.parametrize("query", ["?kind=lease", "?since=yesterday", "?marker=x", "?limit=0", "?object=", "?who=me"])
def test_conditions_that_are_none_are_refused(admin: Person, query: str) -> None:
    assert admin("GET", f"/audit{query}").status_code == 400


def test_members_see_none(member: Person, reader: Person) -> None:
    assert member("GET", "/audit").status_code == 403
    assert reader("GET", "/audit").status_code == 403


def test_pages_stay_the_same_while_changes_come(admin: Person) -> None:
    for number in range(7):
        admin.done(admin("PUT", "/limits/project", {"leases": number}))
    seen, path = [], "/audit?kind=limits&limit=2"
    while path:
        answer = admin.get(path)
        seen += [entry["after"]["leases"] for entry in answer["audit"]]
        admin.done(admin("PUT", "/limits/project", {"leases": 100 + len(seen)}))
        links = answer["audit_links"]
        path = links[0]["href"].partition("/reservation/v1")[2] if links else ""
    assert seen == [6, 5, 4, 3, 2, 1, 0]


def statements(engine: Engine, act: Any) -> list[str]:
    """What is sent to the database meanwhile."""
    sent: list[str] = []

    def note(conn: object, cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    act()
    event.remove(engine, "before_cursor_execute", note)
    return sent


def test_a_page_takes_as_many_statements_whatever_is_on_it(admin: Person, climate: Climate) -> None:
    admin.done(admin("PUT", "/limits/project", {"leases": 1}))
    few = statements(climate.engine, lambda: listed(admin, "?limit=1"))
    for number in range(20):
        admin.done(admin("PUT", f"/limits/p{number}", {"leases": number}))
        admin.done(admin("PUT", f"/os-hosts/{number % 4 + 1}", {"rack": str(number)}))
    many = statements(climate.engine, lambda: listed(admin, "?limit=50"))
    assert len(few) == len(many) <= 3


def test_the_index_holds_the_kinds_that_are_listed() -> None:
    assert set(AUDITED_KINDS) == {kind.__name__ for kind in get_args(AuditFact)}


def test_a_page_is_read_by_its_index(climate: Climate) -> None:
    """A journal of many leases costs a page of the audit trail nothing."""
    fill = """
        INSERT INTO journal (stream, version, kind, body, actor, request_id)
        SELECT gen_random_uuid(), 1, CASE WHEN n % 100 = 0 THEN 'LimitsSet' ELSE 'LeaseDeleted' END,
            '{"at": "2030-01-01T00:00:00+00:00", "project_id": "p", "limits": {}}',
            jsonb_build_object('user_id', 'u' || n), ''
        FROM generate_series(1, 20000) n
    """
    with climate.engine.connect() as conn:
        conn.execute(text(fill))
        conn.execute(text("ANALYZE journal"))
        seen: list[str] = []

        def note(_: object, __: object, statement: str, given: Any, *___: object) -> None:
            seen.append(statement)
            asked.append(given)

        asked: list[Any] = []
        event.listen(climate.engine, "before_cursor_execute", note)
        audit_trail.listed(conn, audit_trail.AuditQuery(limit=10))
        audit_trail.listed(conn, audit_trail.AuditQuery(author="ada", limit=10))
        event.remove(climate.engine, "before_cursor_execute", note)
        plans = ["\n".join(conn.exec_driver_sql(f"EXPLAIN {seen[n]}", asked[n]).scalars()) for n in (0, 2)]
        # A statement that was run a few times has one plan for all values, which are not known to the planner.
        conn.exec_driver_sql("SET LOCAL plan_cache_mode = force_generic_plan")
        numbers: dict[str, int] = {}
        unknown = re.sub(r"%\((\w+)\)s", lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}", seen[2])
        conn.exec_driver_sql(f"PREPARE page AS {unknown}")
        nulls = ", ".join("NULL" for _ in numbers)
        prepared = "\n".join(conn.exec_driver_sql(f"EXPLAIN EXECUTE page ({nulls})").scalars())
        conn.rollback()
    assert "ix_journal_audited" in plans[0]
    assert "ix_journal_audited_author" in plans[1]
    assert "ix_journal_audited_author" in prepared
