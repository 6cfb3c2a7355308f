"""The Python client against a served cloud, whose events are run beside it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from climate.client import (
    Client,
    ClientError,
    Conflict,
    InvalidRequest,
    NotAllowed,
    NotFound,
    Repeat,
    TimedOut,
    Unreachable,
    connect,
    hosts,
)
from tests.compute.served_cloud import Served, served
from tests.databases import unsafe

HOUR = timedelta(hours=1)
RESERVABLE = ("n1", "n2", "n3")


@pytest.fixture(scope="module")
def cloud(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("home")
    with served(unsafe(make_database(cloud_template)), home, (*RESERVABLE, "for-everybody")) as found:
        with connect("climate", environ=variables(found.home)) as admin:
            for name in RESERVABLE:
                admin.http.json("reservation", "POST", "/os-hosts", json={"name": name})
        yield found


def variables(home: Path) -> dict[str, str]:
    return {"OS_CLIENT_CONFIG_FILE": str(home / "clouds.yaml"), "HOME": str(home), "CLIMATE_HOME": str(home)}


@pytest.fixture
def demo(cloud: Served) -> Iterator[Client]:
    with connect("climate-demo", environ=variables(cloud.home)) as client:
        yield client
        for series in client.all_series():
            client.delete_series(series)
        for lease in client.leases():
            client.delete_lease(lease)


def test_a_lease_of_a_held_offer_is_read_extended_and_deleted(demo: Client) -> None:
    begin = datetime.now(UTC) + timedelta(days=1)
    found = demo.find(hosts(2, 3), duration=HOUR, earliest=begin, mode="most", offers=2)
    offer = found.offers[0]
    assert (list(offer.counts), list(offer.free), found.binding) == ([3], [3], None)
    assert offer.end - offer.start == HOUR
    assert [count for _, count in found.free[0] or ()] == [3]
    hold = demo.hold(offer, "kept")
    assert demo.renew(hold).expires_at >= hold.expires_at
    lease = demo.create_lease("training", hold=hold)
    assert (lease.name, lease.status, lease.start, lease.degraded) == ("training", "PENDING", offer.start, False)
    assert [(one.resource_type, one.status) for one in lease.reservations] == [("physical:host", "pending")]
    assert demo.extend(lease, HOUR).end == lease.end + HOUR
    assert demo.extend("training", -HOUR).end == lease.end
    assert demo.update_lease(lease, name="renamed").name == "renamed"
    assert [one.id for one in demo.leases(name="renamed")] == [lease.id]
    demo.delete_lease("renamed")
    with pytest.raises(NotFound, match="no lease"):
        demo.lease(lease)


def test_what_does_not_fit_names_the_cause_and_alternatives(demo: Client) -> None:
    begin = datetime.now(UTC) + timedelta(days=1)
    found = demo.find(hosts(4), duration=HOUR, earliest=begin)
    assert not found.offers
    assert found.binding
    assert found.binding.name == "hosts"
    message, alternative = found.alternatives[0]
    assert message
    assert list(alternative.counts) == [3]
    with pytest.raises(Conflict) as refused:
        demo.create_lease("large", hosts(4), start=begin, duration=HOUR)
    assert refused.value.hint
    assert refused.value.request_id.startswith("req-")
    assert refused.value.details["status"] == 409


def test_a_released_hold_is_gone(demo: Client) -> None:
    offer = demo.find(hosts(1), duration=HOUR, earliest=datetime.now(UTC) + timedelta(days=1)).offers[0]
    hold = demo.hold(offer, "kept")
    demo.release(hold)
    with pytest.raises(NotFound):
        demo.create_lease("training", hold=hold)


def test_the_same_key_creates_one_lease(demo: Client) -> None:
    begin = datetime.now(UTC).replace(microsecond=0) + timedelta(days=2)
    first, second = (demo.create_lease("once", hosts(1), start=begin, duration=HOUR, key="k1") for _ in range(2))
    assert first.id == second.id


def test_a_series_is_created_changed_and_deleted(demo: Client) -> None:
    begin = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    daily = Repeat("FREQ=DAILY;COUNT=3", "Europe/Berlin")
    planned = demo.plan_series("class", hosts(2), repeat=daily, start=begin, duration=HOUR)
    assert [one.fits for one in planned.occurrences] == [True] * 3
    assert not list(demo.all_series())
    made, again = (
        demo.create_series("class", hosts(2), repeat=daily, start=begin, duration=HOUR, key="k2") for _ in range(2)
    )
    assert made.id == again.id
    assert (made.name, made.rule, made.zone, made.leases) == ("class", daily.rule, daily.zone, 3)
    assert [one.end - one.start for one in made.occurrences] == [HOUR] * 3
    assert [(one.id, one.occurrences) for one in demo.all_series(name="class")] == [(made.id, [])]
    first, second, third = (demo.lease(str(one.lease_id)) for one in made.occurrences)
    assert first.start == begin
    demo.update_lease(first, name="single")
    changed = demo.change_series("class", later=-HOUR, extend_by=HOUR, since=second)
    assert [one.end - one.start for one in changed.occurrences] == [HOUR, 2 * HOUR, 2 * HOUR]
    assert changed.occurrences[1].start == second.start - HOUR
    assert demo.change_series(made, name="course", dry_run=True).name == "course"
    assert demo.series("class").name == "class"
    demo.delete_series(made, since=third)
    assert demo.series(made).leases == 2
    demo.delete_series(made)
    with pytest.raises(NotFound):
        demo.series(made)
    assert not list(demo.leases())


def test_dates_that_do_not_fit_have_a_reason_and_alternatives(demo: Client) -> None:
    begin = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    demo.create_lease("taken", hosts(3), start=begin + timedelta(days=1), duration=HOUR)
    daily = Repeat("FREQ=DAILY;COUNT=2")
    with pytest.raises(Conflict):
        demo.create_series("class", hosts(1), repeat=daily, start=begin, duration=HOUR)
    made = demo.create_series("class", hosts(1), repeat=replace(daily, fitting=True), start=begin, duration=HOUR)
    assert [one.fits for one in made.occurrences] == [True, False]
    assert made.occurrences[1].reason
    assert made.occurrences[1].alternatives[0][1].start >= begin + timedelta(days=1)


def test_a_lease_that_does_not_fit_stands_in_line(demo: Client) -> None:
    begin = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    taken = demo.create_lease("taken", hosts(3), start=begin, duration=HOUR)
    assert taken.waiting is None
    until = begin + timedelta(days=2)
    lease = demo.create_or_wait("waits", hosts(1), start=begin, duration=HOUR, until=until)
    assert lease.waiting
    assert (lease.waiting.place, lease.waiting.until, lease.waiting.estimate) == (1, until, taken.end)
    fixed = demo.create_or_wait("fixed", hosts(2), start=begin, duration=HOUR)
    assert fixed.waiting
    assert (fixed.waiting.until, fixed.waiting.estimate) == (begin, None)
    assert fixed.waiting.reason
    assert [one.waiting.place for one in demo.leases() if one.waiting] == [1, 2]


def test_a_server_is_booted_and_deleted(demo: Client) -> None:
    seen: list[str] = []
    server = demo.boot(
        "node", flavor="m1.tiny", image="demo", networks=["private"], metadata={"a": "b"}, user_data=b"x"
    )
    server = demo.wait_for_server(server, progress=seen.append)
    assert (server.status, server.body["metadata"], len(server.addresses)) == ("ACTIVE", {"a": "b"}, 1)
    assert set(seen) <= {"BUILD"}
    with pytest.raises(TimedOut, match="still ACTIVE"):
        demo.wait_for_server(server, "SHUTOFF", timeout=timedelta(seconds=0.2))
    demo.delete_server("node")
    with pytest.raises(ClientError, match="gone"):
        demo.wait_for_server(server, "DELETED")


def test_a_lease_that_is_deleted_ends_the_wait(demo: Client) -> None:
    lease = demo.create_lease("later", hosts(1), start=datetime.now(UTC) + timedelta(days=3), duration=HOUR)
    demo.delete_lease(lease)
    with pytest.raises(ClientError, match="is gone"):
        demo.wait_for_lease(lease)


def test_a_boot_needs_one_reservation_of_hosts(demo: Client) -> None:
    start = datetime.now(UTC) + timedelta(days=4)
    lease = demo.create_lease("two", hosts(1), hosts(1), start=start, duration=HOUR)
    with pytest.raises(InvalidRequest, match="has 2 reservations of hosts"):
        demo.boot("node", flavor="m1.tiny", image="demo", lease=lease)


def test_wrong_values_are_refused_before_they_are_sent(demo: Client) -> None:
    naive = datetime(2030, 1, 1)
    with pytest.raises(InvalidRequest, match="start has no time zone"):
        demo.create_lease("naive", hosts(1), start=naive, duration=HOUR)
    with pytest.raises(InvalidRequest, match="earliest has no time zone"):
        demo.find(hosts(1), duration=HOUR, earliest=naive)
    for period in ({}, {"end": datetime.now(UTC) + HOUR, "duration": HOUR}):
        with pytest.raises(InvalidRequest, match="one of end and duration"):
            demo.create_lease("period", hosts(1), **period)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest):
        demo.find(duration=HOUR)


def test_clouds_that_are_missing_wrong_or_away_are_errors_of_their_own(cloud: Served, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no cloud 'nowhere'"):
        connect("nowhere", environ=variables(cloud.home))
    text = (cloud.home / "clouds.yaml").read_text(encoding="utf-8")
    for name, replaced, kind in (
        ("wrong", ("password: ", "password: not-"), NotAllowed),
        ("away", (cloud.url, "http://127.0.0.1:1"), Unreachable),
    ):
        home = tmp_path / name
        home.mkdir()
        (home / "clouds.yaml").write_text(text.replace(*replaced), encoding="utf-8")
        with connect("climate-demo", environ=variables(home)) as client, pytest.raises(kind):
            client.lease("training")


def test_hosts_of_a_lease_are_given_to_another_project(demo: Client, cloud: Served) -> None:
    start = datetime.now(UTC) + HOUR
    lease = demo.create_lease("long", hosts(1), start=start, duration=2 * HOUR)
    with connect("climate", environ=variables(cloud.home)) as admin:
        project = admin.http.token.body["project"]["id"]
    given = demo.sublet(lease, "course", project=project, hosts=1, start=start, duration=HOUR, on_end="recycle")
    assert (given.name, given.body["project_id"], given.body["parent"]["lease_id"]) == ("course", project, lease.id)
    assert [one.id for one in demo.subleases(lease)] == [given.id]
    with pytest.raises(Conflict, match=given.id):
        demo.delete_lease(lease)
    with pytest.raises(Conflict, match="can give 0"):
        demo.sublet(lease, "more", project=project, hosts=1, start=start, duration=HOUR)
    with pytest.raises(InvalidRequest, match="nowhere is no host of the lease"):
        demo.sublet(lease, "more", project=project, hosts=["nowhere"], start=start, duration=HOUR)
    demo.delete_lease(given)


def test_a_lease_is_shared_with_known_projects_and_users(demo: Client, cloud: Served) -> None:
    lease = demo.create_lease("shared", hosts(1), start=datetime.now(UTC) + HOUR, duration=HOUR)
    with connect("climate", environ=variables(cloud.home)) as admin:
        token = admin.http.token.body
        project, user = token["project"]["id"], token["user"]["id"]
    shared = demo.share_lease(lease, projects=[project], viewers=[user])
    assert shared.body["sharing"] == {"projects": [project], "viewers": [user], "extenders": []}
    with pytest.raises(InvalidRequest, match="no project has the id nope"):
        demo.share_lease(lease, projects=["nope"])
    with pytest.raises(InvalidRequest, match="no user has the id nope"):
        demo.share_lease(lease, extenders=["nope"])
    assert "sharing" not in demo.share_lease(lease).body
