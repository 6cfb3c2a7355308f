"""Usage of projects over HTTP: the hours that their servers ran."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from tests.api.compute.api_clients import Person, World, done, message

USAGE = "/compute/v2.1/os-simple-tenant-usage"
DAY = timedelta(days=1)
KEYS = {
    "tenant_id",
    "start",
    "stop",
    "total_hours",
    "total_vcpus_usage",
    "total_memory_mb_usage",
    "total_local_gb_usage",
}


def span(start: datetime | None = None, stop: datetime | None = None) -> str:
    """Return the query of a period; the default is from yesterday to tomorrow."""
    now = datetime.now(UTC)
    return f"start={(start or now - DAY):%Y-%m-%dT%H:%M:%S}&end={(stop or now + DAY):%Y-%m-%dT%H:%M:%S.%f}"


def launched(there: World, server_id: str, hours: float) -> None:
    """Let a server have been launched so many hours ago."""
    with there.here.compute.engine.begin() as conn:
        ago = "UPDATE compute_servers SET launched_at = now() - make_interval(secs => :seconds) WHERE id = :id"
        conn.execute(text(ago), {"seconds": hours * 3600, "id": server_id})


def project_of(there: World, server_id: str) -> str:
    return str(there.here.look(server_id).project_id)


@pytest.fixture
def ran(there: World, member: Person) -> str:
    """A server that runs since two hours; its id."""
    made = member.booted()
    there.settle()
    launched(there, made, 2)
    return made


def test_a_running_and_a_deleted_server_count(there: World, member: Person, ran: str) -> None:
    project = project_of(there, ran)
    gone = member.booted()
    there.settle()
    launched(there, gone, 1)
    done(member("DELETE", f"/compute/v2.1/servers/{gone}"), 204)
    there.settle()
    usage = member.get(f"{USAGE}/{project}?{span()}")["tenant_usage"]
    assert usage.keys() == KEYS | {"server_usages"}
    servers = {one["instance_id"]: one for one in usage["server_usages"]}
    assert servers.keys() == {ran, gone}
    assert (servers[ran]["state"], servers[ran]["ended_at"]) == ("active", None)
    assert (servers[gone]["state"], servers[gone]["ended_at"] is None) == ("terminated", False)
    assert [round(servers[one]["hours"]) for one in (ran, gone)] == [2, 1]
    assert servers[ran]["uptime"] >= 7200
    vcpus = servers[ran]["vcpus"]
    assert usage["total_vcpus_usage"] == pytest.approx(usage["total_hours"] * vcpus)


def test_a_server_that_never_ran_does_not_count(there: World, member: Person, ran: str) -> None:
    waiting = member.booted()
    shown = member.get(f"{USAGE}/{project_of(there, ran)}?{span()}")["tenant_usage"]["server_usages"]
    assert waiting not in [one["instance_id"] for one in shown]


def test_hours_are_those_of_the_period_and_none_of_the_future(there: World, member: Person, ran: str) -> None:
    now = datetime.now(UTC)
    project = project_of(there, ran)
    hour = member.get(f"{USAGE}/{project}?{span(now - timedelta(hours=1), now)}")["tenant_usage"]
    assert hour["total_hours"] == pytest.approx(1, abs=0.01)
    year = member.get(f"{USAGE}/{project}?{span(stop=now + 365 * DAY)}")["tenant_usage"]
    assert round(year["total_hours"]) == 2
    assert member.get(f"{USAGE}/{project}?{span(now - 9 * DAY, now - 8 * DAY)}") == {"tenant_usage": {}}


def test_administrators_list_all_projects(there: World, admin: Person, ran: str) -> None:
    (brief,) = admin.get(f"{USAGE}?{span()}")["tenant_usages"]
    assert (brief.keys(), brief["tenant_id"]) == (KEYS, project_of(there, ran))
    (full,) = admin.get(f"{USAGE}?{span()}&detailed=1")["tenant_usages"]
    assert [one["instance_id"] for one in full["server_usages"]] == [ran]


def test_pages_since_2_40_cover_each_server_once(there: World, admin: Person, member: Person, ran: str) -> None:
    made = [ran, *(member.booted() for _ in range(2))]
    there.settle()
    seen: list[str] = []
    path: str | None = f"{USAGE}?{span()}&detailed=1&limit=2"
    while path is not None:
        answer: dict[str, Any] = admin.get(path, "2.40")
        seen += [one["instance_id"] for project in answer["tenant_usages"] for one in project["server_usages"]]
        link = answer.get("tenant_usages_links")
        path = link and link[0]["href"].partition("//")[2].partition("/")[2]
        path = path and f"/{path}"
    assert seen == sorted(made)


@pytest.mark.parametrize(
    "query",
    [
        "start=2026-01-02T00:00:00&end=2026-01-01T00:00:00",
        "start=2026-01-01T00:00:00&end=2026-01-01T00:00:00",
        "start=yesterday",
        "start=2026-13-01T00:00:00",
        "end=",
    ],
)
def test_bad_periods_are_refused(admin: Person, query: str) -> None:
    message(admin("GET", f"{USAGE}?{query}"), 400, "badRequest")


def test_others_do_not_see_it(there: World, member: Person, stranger: Person, ran: str) -> None:
    message(member("GET", f"{USAGE}?{span()}"), 403, "forbidden")
    message(stranger("GET", f"{USAGE}/{project_of(there, ran)}?{span()}"), 403, "forbidden")
    assert member("GET", f"{USAGE}/?{span()}").status_code == 404
