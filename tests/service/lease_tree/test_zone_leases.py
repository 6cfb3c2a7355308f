"""Leases over several complete zones: all of it or nothing, whoever dies at which step."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from climate.compute.nodes.services import IMAGE_ID
from climate.domain.errors import (
    ClimateError,
    Conflict,
    InvalidInput,
    LimitExceeded,
    NotEnoughHosts,
    NotFound,
    Unavailable,
)
from climate.domain.lease import Lease
from climate.domain.limits import Limit
from climate.domain.status import HoldState, LeaseStatus, PartState
from climate.service.admission import limits
from climate.service.lease_tree import leases as tree_leases
from climate.service.lease_tree.leases import HOLD
from climate.service.leases import leases
from climate.service.leases.update import Changes
from climate.store.idempotency import Key
from tests.campaign import cases
from tests.compute.zones.tree import LATEST
from tests.conftest import ADMIN, MEMBER
from tests.flask_apps import app_of
from tests.service.zone_tree import Died, Family, family_of, hosts_wanted

LONG = HOLD.total_seconds() + 60


@pytest.fixture(scope="module")
def standing(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Family]:
    with family_of(make_database, cloud_template, tmp_path_factory.mktemp("family")) as found:
        yield found


@pytest.fixture
def family(standing: Family) -> Iterator[Family]:
    yield standing
    standing.tidy()


def parts(lease: Lease) -> list[tuple[str, int, PartState]]:
    return sorted((part.zone, part.hosts, part.state) for part in lease.parts)


def test_own_hosts_come_first(family: Family) -> None:
    lease = family.make(hosts_wanted(2))
    assert (lease.parts, len(lease.reservations[0].hosts)) == ((), 2)
    assert family.of("left") == family.of("right") == []


def test_what_does_not_fit_here_lies_in_the_child_with_the_best_offer(family: Family) -> None:
    family.take("parent", 1)
    family.take("left", 1)
    lease = family.make(hosts_wanted(1, 2))
    assert parts(lease) == []
    lease = family.make(hosts_wanted(1, 2))
    assert (lease.status, parts(lease)) == (LeaseStatus.PENDING, [("right", 2, PartState.CONFIRMED)])
    (theirs,) = family.of("right")
    assert (theirs.status, theirs.period) == (LeaseStatus.PENDING, lease.period)
    family.check()


def test_a_lease_is_spread_only_where_that_is_asked_for(family: Family) -> None:
    with pytest.raises(NotEnoughHosts, match="children offer none"):
        family.make(hosts_wanted(5))
    lease = family.make(hosts_wanted(5, across=True))
    assert len(lease.reservations[0].hosts) == 2
    assert parts(lease) == [("left", 2, PartState.CONFIRMED), ("right", 1, PartState.CONFIRMED)]
    assert (lease.reservations[0].spec["min"], lease.reservations[0].spec["max"]) == (5, 5)
    with pytest.raises(NotEnoughHosts):
        family.make(hosts_wanted(2, across=True))
    family.check()


def test_a_zone_can_be_named(family: Family) -> None:
    assert parts(family.make(hosts_wanted(1, zone="right"))) == [("right", 1, PartState.CONFIRMED)]
    assert parts(family.make(hosts_wanted(1, zone="parent"))) == []
    with pytest.raises(NotEnoughHosts):
        family.make(hosts_wanted(3, zone="parent"))
    with pytest.raises(NotEnoughHosts):
        family.make(hosts_wanted(2, zone="right"))
    with pytest.raises(InvalidInput, match="'nowhere' is neither this zone nor a child zone"):
        family.make(hosts_wanted(1, zone="nowhere"))


def test_a_dry_run_keeps_nothing(family: Family) -> None:
    tried = tree_leases.create(family.parent, MEMBER, family.order(hosts_wanted(5, across=True)), dry_run=True)
    assert [part.most for part in tried.parts] == [2, 1]
    assert all(family.free(name) for name in family.tree.zones)


def test_parts_count_in_the_limits_of_the_project(family: Family) -> None:
    limits.put(family.parent, ADMIN, MEMBER.project_id, {Limit.HOSTS_AT_ONCE: 3})
    try:
        family.make(hosts_wanted(2, zone="left"))
        with pytest.raises(LimitExceeded, match="hosts_at_once"):
            family.make(hosts_wanted(2, zone="right"))
        assert family.free("right")
        family.make(hosts_wanted(1, zone="right"))
    finally:
        limits.drop(family.parent, ADMIN, MEMBER.project_id)


def test_a_repeated_request_makes_one_lease(family: Family) -> None:
    order, key = family.order(hosts_wanted(5, across=True)), Key("k1", "f")
    first = tree_leases.create(family.parent, MEMBER, order, key)
    assert tree_leases.create(family.parent, MEMBER, order, key) == first
    assert len(family.of("left")) == len(family.of("right")) == 1


def test_the_life_of_a_lease_over_zones(family: Family) -> None:
    lease = family.make(hosts_wanted(5, across=True), start=None)
    family.settle()
    assert family.get(lease).status is LeaseStatus.ACTIVE
    assert [family.of(name)[0].status for name in ("left", "right")] == [LeaseStatus.ACTIVE] * 2
    family.clock.forward(hours=2)
    family.settle(90)
    over = family.get(lease)
    assert (over.status, {part.state for part in over.parts}) == (LeaseStatus.TERMINATED, {PartState.RELEASED})
    assert over.hold_state is HoldState.RELEASED
    assert all(family.free(name) for name in family.tree.zones)
    family.check()


@pytest.mark.parametrize("start", [None, 1])
def test_a_deletion_is_over_all_parts(family: Family, start: float | None) -> None:
    lease = family.make(hosts_wanted(5, across=True), start=start)
    family.settle()
    assert leases.delete(family.parent, MEMBER, lease.id).status is LeaseStatus.DELETING
    family.settle(30)
    with pytest.raises(NotFound):
        family.get(lease)
    assert all(family.free(name) for name in family.tree.zones)


def test_a_deletion_waits_for_a_child_that_is_away(family: Family) -> None:
    lease = family.make(hosts_wanted(2, zone="left"))
    family.tree.cut("left")
    leases.delete(family.parent, MEMBER, lease.id)
    family.settle(30)
    assert family.get(lease).status is LeaseStatus.DELETING
    family.tree.mend("left")
    family.settle(300)
    with pytest.raises(NotFound):
        family.get(lease)
    assert family.free("left")


# Other dates.


def change(family: Family, lease: Lease, **wanted: Any) -> Lease:
    return tree_leases.update(family.parent, MEMBER, lease.id, Changes(**wanted))


def ends(family: Family) -> set[Any]:
    return {lease.period.end for name in family.tree.zones for lease in family.of(name)}


def test_prolonged_and_shortened_over_all_parts(family: Family) -> None:
    lease = family.make(hosts_wanted(5, across=True))
    for hours in (5, -2):
        end = family.get(lease).period.end + timedelta(hours=hours)
        assert change(family, lease, end=end).period.end == end
        family.settle()
        assert ends(family) == {end}
    assert change(family, lease, name="other").name == "other"
    with pytest.raises(Conflict, match="only the name"):
        change(family, lease, start=lease.period.start + timedelta(minutes=5))
    with pytest.raises(Conflict, match="cannot be changed"):
        change(family, lease, reservations=[{"id": str(lease.reservations[0].id), "zone": "left"}])
    family.check()


def test_a_prolongation_that_one_child_refuses_leaves_all_as_they_were(family: Family) -> None:
    lease = family.make(hosts_wanted(5, across=True))
    family.take("right", 2, start=4, hours=2)
    with pytest.raises(Conflict, match="zone right"):
        change(family, lease, end=lease.period.end + timedelta(hours=3))
    family.settle()
    assert family.get(lease).period == lease.period
    assert {one.period.end for one in family.of("left")} == {lease.period.end}
    assert family.take("left", 2, start=4, hours=2)
    family.check()


@pytest.mark.parametrize("after", cases([False, True], {True}))
@pytest.mark.parametrize("number", cases(range(1, 3), {2}))
def test_a_parent_that_dies_while_it_prolongs_leaves_one_end(family: Family, number: int, after: bool) -> None:
    lease = family.make(hosts_wanted(5, across=True))
    with family.dying(number, after=after), suppress(Died):
        change(family, lease, end=lease.period.end + timedelta(hours=1))
    family.settle(LONG)
    assert len(ends(family)) == 1
    family.check()


def test_a_child_that_is_away_hears_of_an_earlier_end_later(family: Family) -> None:
    lease = family.make(hosts_wanted(2, zone="left"), hours=5)
    family.tree.cut("left")
    end = lease.period.end - timedelta(hours=2)
    change(family, lease, end=end)
    family.settle(10)
    family.tree.mend("left")
    assert family.of("left")[0].period == lease.period
    family.settle(300)
    assert ends(family) == {end}


def test_an_early_end_is_over_all_parts(family: Family) -> None:
    lease = family.make(hosts_wanted(5, across=True), start=None)
    family.settle()
    change(family, lease, end_now=True)
    family.settle(60)
    assert family.get(lease).status is LeaseStatus.TERMINATED
    assert all(family.free(name) for name in family.tree.zones)


# Faults.


def attempt(family: Family, key: Key | None = None) -> Lease | None:
    """Ask for a lease over all zones, whatever comes of it."""
    try:
        return tree_leases.create(family.parent, MEMBER, family.order(hosts_wanted(5, across=True)), key)
    except (ClimateError, Died):
        return None


@pytest.mark.parametrize("after", cases([False, True], {True}))
@pytest.mark.parametrize("number", cases(range(1, 5), {3}))
def test_a_parent_that_dies_leaves_all_or_nothing(family: Family, number: int, after: bool) -> None:
    """At each talk with the children: the offers, the holds, the confirmations; and not at all."""
    with family.dying(number, after=after):
        made = attempt(family)
    family.settle(LONG)
    assert family.all_or_nothing() is (made is not None)
    assert (made is None) is (number < 4)


@pytest.mark.parametrize("number", cases(range(1, 8), {4}))
def test_a_parent_that_dies_as_it_records_leaves_all_or_nothing(family: Family, number: int) -> None:
    with family.dying_at_record(number):
        made = attempt(family)
    family.settle(LONG)
    assert family.all_or_nothing() is (made is not None)


@pytest.mark.parametrize("number", cases(range(1, 7), {4}))
def test_who_repeats_a_request_that_broke_off_gets_his_lease(family: Family, number: int) -> None:
    order, key = family.order(hosts_wanted(5, across=True)), Key(f"again-{number}", "f")
    with family.dying_at_record(number), suppress(Died):
        tree_leases.create(family.parent, MEMBER, order, key)
    made = tree_leases.create(family.parent, MEMBER, order, key)
    assert {part.state for part in made.parts} == {PartState.CONFIRMED}
    family.settle(LONG)
    assert family.all_or_nothing()
    assert tree_leases.create(family.parent, MEMBER, order, key) == made


def nothing_before(environ: dict[str, Any], pass_on: Callable[[], Any]) -> Any:
    raise ConnectionResetError


def nothing_after(environ: dict[str, Any], pass_on: Callable[[], Any]) -> Any:
    b"".join(pass_on())
    raise ConnectionResetError


WHAT = {"hold": ("/leases", "POST"), "confirm": ("/confirm", "POST"), "release": ("", "DELETE")}


@pytest.mark.parametrize("times", cases(range(1, 3), {1}))
@pytest.mark.parametrize("how", cases([nothing_before, nothing_after], {nothing_after}))
@pytest.mark.parametrize("what", cases(["hold", "confirm"], {"hold"}))
def test_a_child_that_dies_leaves_all_or_nothing(family: Family, what: str, how: Any, times: int) -> None:
    """Before it has done what it was asked for, or after; once, or until it is mended."""
    ending, method = WHAT[what]
    left = [times if times == 1 else 99]

    def spoil(environ: dict[str, Any], pass_on: Callable[[], Any]) -> Any:
        meant = environ["REQUEST_METHOD"] == method and environ["PATH_INFO"].endswith(ending)
        if meant and "dry_run" not in environ["QUERY_STRING"] and left[0]:
            left[0] -= 1
            return how(environ, pass_on)
        return pass_on()

    family.between("left", spoil)
    made = attempt(family)
    assert left[0] < (1 if times == 1 else 99), "nothing was spoilt"
    family.settle(LONG)
    family.tree.mend("left")
    family.settle(300)
    assert family.all_or_nothing() is (made is not None)
    assert (made is not None) is (what == "confirm" and times == 1)


def test_a_child_that_gives_its_offer_away_is_passed_over(family: Family) -> None:
    family.take("parent", 2)
    taken: list[Lease] = []

    def spoil(environ: dict[str, Any], pass_on: Callable[[], Any]) -> Any:
        answer = pass_on()
        if "dry_run" in environ["QUERY_STRING"] and not taken:
            taken.append(family.take("left", 1))
        return answer

    family.between("left", spoil)
    lease = family.make(hosts_wanted(2))
    assert parts(lease) == [("right", 2, PartState.CONFIRMED)]
    assert len(family.of("left")) == 1


def test_what_is_held_too_long_is_given_back_by_all(family: Family) -> None:
    held = replace(family.order(hosts_wanted(5, across=True)), hold=timedelta(seconds=60))
    lease = tree_leases.create(family.parent, MEMBER, held)
    assert (lease.status, {part.state for part in lease.parts}) == (LeaseStatus.HELD, {PartState.HELD})
    assert [family.of(name)[0].status for name in ("left", "right")] == [LeaseStatus.HELD] * 2
    family.settle(120)
    assert all(family.free(name) for name in family.tree.zones)
    with pytest.raises(Conflict, match="expired"):
        tree_leases.confirm(family.parent, MEMBER, lease.id)


def test_a_hold_over_zones_is_confirmed_once(family: Family) -> None:
    held = replace(family.order(hosts_wanted(5, across=True)), hold=timedelta(seconds=60))
    lease = tree_leases.create(family.parent, MEMBER, held)
    first = tree_leases.confirm(family.parent, MEMBER, lease.id, "k")
    assert tree_leases.confirm(family.parent, MEMBER, lease.id, "k") == first
    assert {part.state for part in first.parts} == {PartState.CONFIRMED}
    family.settle(120)
    assert family.all_or_nothing()


def test_no_secret_and_no_host_of_a_child_is_reported(family: Family) -> None:
    lease = family.make(hosts_wanted(2, zone="left"))
    said = json.dumps([str(entry.fact) for entry in leases.history(family.parent, MEMBER, lease.id)])
    assert "left-n1" not in said
    assert family.tree["left"].password("admin") not in said


# Over the wire.


def ask(family: Family, method: str, path: str, body: Any = None, user: str = "demo", zone: str = "parent") -> Any:
    sent = {"json": body} if body is not None else {}
    return family.tree[zone].person(user).ask(method, f"/reservation/v1{path}", **sent)


def wire_order(family: Family, *wanted: dict[str, Any]) -> dict[str, Any]:
    end = family.now() + timedelta(hours=2)
    return {"name": "l", "start_date": "now", "end_date": f"{end:%Y-%m-%d %H:%M}", "reservations": list(wanted)}


def test_a_server_is_booted_on_a_lease_in_a_child(family: Family) -> None:
    answer = ask(family, "POST", "/leases", wire_order(family, hosts_wanted(2, zone="left")))
    assert answer.status_code == 201, answer.get_data(as_text=True)
    (one,) = answer.get_json()["lease"]["reservations"]
    assert [(part["zone"], part["state"], part["hosts"]) for part in one["parts"]] == [("left", "confirmed", 2)]
    family.settle()
    server_id = family.tree["parent"].boot(scheduler_hints={"reservation": one["id"]})
    family.settle()
    server = family.tree["left"].ask("GET", f"/servers/{server_id}").get_json()["server"]
    assert server["OS-EXT-SRV-ATTR:hypervisor_hostname"].startswith("left-n")
    shown = family.tree["parent"].ask("GET", f"/servers/{server_id}", user="demo")
    assert (shown.status_code, shown.get_json()["server"]["status"]) == (200, "ACTIVE")
    assert family.tree["right"].ask("GET", f"/servers/{server_id}").status_code == 404
    stranger = ask(family, "GET", f"/leases/{one['lease_id']}", user="admin")
    assert stranger.status_code == 200, "administrators see it"
    assert ask(family, "DELETE", f"/leases/{one['lease_id']}").status_code == 204
    family.settle(60)
    assert ask(family, "GET", f"/leases/{one['lease_id']}").status_code == 404
    assert family.tree["left"].ask("GET", f"/servers/{server_id}").status_code == 404
    assert family.free("left")


def test_another_project_has_nothing_of_a_lease_in_a_child(family: Family) -> None:
    lease = family.make(hosts_wanted(2, zone="left"), start=None)
    family.settle()
    body = {"name": "s", "imageRef": IMAGE_ID, "flavorRef": "1", "networks": "auto"}
    for reservation in (str(lease.reservations[0].id), str(lease.parts[0].reservation_id)):
        hinted = {**body, "scheduler_hints": {"reservation": reservation}}
        answer = family.tree["parent"].ask("POST", "/servers", {"server": hinted}, "demo", headers=LATEST)
        assert answer.status_code == 404
    assert ask(family, "GET", f"/leases/{lease.id}").status_code == 404


@pytest.mark.parametrize("wrong", [{"zone": ""}, {"zone": 3}, {"zone": "x" * 256}, {"across": "yes"}, {"across": 2}])
def test_what_is_no_zone(family: Family, wrong: dict[str, Any]) -> None:
    answer = ask(family, "POST", "/leases", wire_order(family, hosts_wanted(1, **wrong)))
    assert answer.status_code == 400
    assert next(iter(wrong)) in answer.get_json()["error_message"]


def test_a_member_of_the_parent_is_no_administrator_of_the_child(family: Family) -> None:
    limited = family.tree["left"].deployment
    climate = replace(limited.climate, settings=replace(limited.climate.settings, host_on_end_choices="terminate"))
    family.tree["left"].deployment = replace(limited, climate=climate)
    before, family.tree["left"].app = family.tree["left"].app, app_of(family.tree["left"].deployment)
    try:
        with pytest.raises(NotEnoughHosts):
            family.make(hosts_wanted(1, zone="left", on_end="release"))
        order = family.order(hosts_wanted(1, zone="left", on_end="release"))
        assert tree_leases.create(family.parent, ADMIN, order).parts
    finally:
        family.tree["left"].deployment, family.tree["left"].app = limited, before


@pytest.fixture(scope="module")
def standing_line(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Family]:
    with family_of(
        make_database, cloud_template, tmp_path_factory.mktemp("line"), {"left": "parent", "grandchild": "left"}
    ) as found:
        yield found


@pytest.fixture
def line(standing_line: Family) -> Iterator[Family]:
    yield standing_line
    standing_line.tidy()


def test_a_grandchild_holds_for_its_parent_and_its_grandparent(line: Family) -> None:
    line.take("parent", 2)
    line.take("left", 2)
    lease = line.make(hosts_wanted(2))
    assert parts(lease) == [("left", 2, PartState.CONFIRMED)]
    theirs = next(one for one in line.of("left") if one.parts)
    assert parts(theirs) == [("grandchild", 2, PartState.CONFIRMED)]
    (deepest,) = line.of("grandchild")
    assert (deepest.status, len(deepest.reservations[0].hosts)) == (LeaseStatus.PENDING, 2)
    leases.delete(line.parent, MEMBER, lease.id)
    line.settle(90)
    line.settle(90)
    assert line.free("grandchild")
    line.check()


def test_a_request_that_comes_back_is_answered(line: Family) -> None:
    line.adopt("grandchild", "parent")
    with pytest.raises(NotEnoughHosts):
        line.make(hosts_wanted(3))
    assert all(line.free(name) for name in line.tree.zones)


def test_refusal_names_the_child_that_did_not_answer(family: Family) -> None:
    family.tree.cut("right")
    with pytest.raises(NotEnoughHosts, match=r"children offer none; no answer from zone right$"):
        family.make(hosts_wanted(5))
    with pytest.raises(NotEnoughHosts, match=r"children offer 2; no answer from zone right$"):
        family.make(hosts_wanted(5, across=True))
    with pytest.raises(NotEnoughHosts, match=r"wanted in zone right; children offer none; no answer from zone right$"):
        family.make(hosts_wanted(1, zone="right"))


@pytest.mark.parametrize(
    ("inactive", "named"), [(("left",), "zone left"), (("left", "right"), "zone left, zone right")]
)
def test_refusal_names_inactive_children(family: Family, inactive: tuple[str, ...], named: str) -> None:
    with family.parent.engine.begin() as conn:
        conn.execute(
            text("UPDATE compute_zones SET is_active = false WHERE name = ANY(:names)"), {"names": [*inactive]}
        )
    try:
        with pytest.raises(NotEnoughHosts, match=f"; no answer from {named}$"):
            family.make(hosts_wanted(5))
    finally:
        with family.parent.engine.begin() as conn:
            conn.execute(text("UPDATE compute_zones SET is_active = true"))


def test_refusal_of_a_hold_names_the_child_that_did_not_answer(family: Family) -> None:
    def cut_holds(environ: dict[str, Any], pass_on: Callable[[], Any]) -> Any:
        if environ["REQUEST_METHOD"] == "POST" and "dry_run" not in environ["QUERY_STRING"]:
            raise ConnectionError
        return pass_on()

    family.between("left", cut_holds)
    with pytest.raises(Unavailable, match=r"^The zone left does not answer: all parts are released"):
        family.make(hosts_wanted(2, zone="left"))
