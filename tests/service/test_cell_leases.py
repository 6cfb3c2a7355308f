"""Leases over a tree of cells: all of it or nothing, whoever dies at which step, and whichever message is lost."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from climate.cloud.children import Asker, Child, Confirm, Look, PartRequest, Prolong, Release, Verdict
from climate.domain.errors import ClimateError, Conflict, InvalidInput, NotEnoughHosts, NotFound
from climate.domain.lease import Lease
from climate.domain.status import LeaseStatus
from climate.service import leases, tree_leases
from climate.service.changes import Changes
from climate.service.tree_leases import HOLD
from climate.store.idempotency import Key
from tests.compute.cells.tree import CellDatabases
from tests.compute.place import unsafe
from tests.conftest import ADMIN, MEMBER
from tests.service.cell_tree import (
    ORDINARY,
    PATHS,
    CellFamily,
    Spoil,
    cell_family,
    lost_after,
    lost_before,
    only,
    twice,
)
from tests.service.deployments import Died, hosts_wanted

LONG = HOLD.total_seconds() + 60
LEFT, RIGHT, LEAF = PATHS["left"], PATHS["right"], PATHS["leaf"]


def some(numbers: range, quick: int) -> list[Any]:
    """All numbers, of which every run takes one."""
    return [pytest.param(n, marks=[] if n == quick else [pytest.mark.slow]) for n in numbers]


@pytest.fixture(scope="module")
def standing(
    make_database: Callable[..., str], engine_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CellFamily]:
    databases = CellDatabases(lambda: unsafe(make_database(engine_template)))
    with cell_family(databases, tmp_path_factory.mktemp("cells")) as found:
        yield found


@pytest.fixture
def cells(standing: CellFamily) -> Iterator[CellFamily]:
    standing.report()
    yield standing
    standing.tidy()


def test_hosts_of_a_grandchild_are_the_best_offer(cells: CellFamily) -> None:
    lease = cells.make(hosts_wanted(1, 3))
    assert (lease.status, cells.parts(lease)) == (LeaseStatus.PENDING, [(LEAF, 3, "confirmed")])
    (theirs,) = cells.of("leaf")
    assert (theirs.status, theirs.period) == (LeaseStatus.PENDING, lease.period)
    assert (theirs.project_id, theirs.user_id) == (MEMBER.project_id, "cell:top")
    assert cells.of("right") == cells.of("left") == []
    assert cells.parts(cells.make(hosts_wanted(1, 2))) == [(LEFT, 2, "confirmed")]
    cells.check()


def test_all_in_one_cell_unless_across_is_asked_for(cells: CellFamily) -> None:
    with pytest.raises(NotEnoughHosts, match="children offer none"):
        cells.make(hosts_wanted(4))
    lease = cells.make(hosts_wanted(5, across=True))
    assert cells.parts(lease) == [(LEFT, 2, "confirmed"), (LEAF, 3, "confirmed")]
    with pytest.raises(NotEnoughHosts):
        cells.make(hosts_wanted(2, across=True))
    assert cells.parts(cells.make(hosts_wanted(1))) == [(RIGHT, 1, "confirmed")]
    cells.check()


@pytest.mark.parametrize("name", ["leaf", LEAF])
def test_a_cell_is_named_by_name_or_path(cells: CellFamily, name: str) -> None:
    assert cells.parts(cells.make(hosts_wanted(1, cell=name))) == [(LEAF, 1, "confirmed")]


def test_a_cell_that_is_named_has_to_have_the_hosts(cells: CellFamily) -> None:
    for name in ("right", "top"):
        with pytest.raises(NotEnoughHosts):
            cells.make(hosts_wanted(2, cell=name))
    for name in ("nowhere", "top!leaf", "right!leaf"):
        with pytest.raises(InvalidInput, match="is neither this cell nor a cell below it"):
            cells.make(hosts_wanted(1, cell=name))
    with pytest.raises(InvalidInput, match="cannot both be given"):
        cells.make(hosts_wanted(1, cell="leaf", zone="z"))


def test_requirements_that_only_cells_know(cells: CellFamily) -> None:
    wanted = {"resource_properties": json.dumps(["==", "$gpu", "a100"])}
    assert cells.parts(cells.make(hosts_wanted(1, **wanted)))
    with pytest.raises(NotEnoughHosts):
        cells.make(hosts_wanted(1, resource_properties=json.dumps(["==", "$gpu", "h100"])))
    with pytest.raises(ClimateError, match="nobody_has_it"):
        cells.make(hosts_wanted(1, resource_properties=json.dumps(["==", "$nobody_has_it", "1"])))


def test_a_dry_run_keeps_nothing(cells: CellFamily) -> None:
    order = cells.order(hosts_wanted(5, across=True))
    tried = tree_leases.create(cells.parent, MEMBER, order, dry_run=True)
    assert sorted(part.most for part in tried.parts) == [2, 3]
    assert all(cells.free(name) for name in cells.sites)


def test_a_repeated_request_makes_one_lease(cells: CellFamily) -> None:
    order, key = cells.order(hosts_wanted(5, across=True)), Key("k1", "f")
    first = tree_leases.create(cells.parent, MEMBER, order, key)
    assert tree_leases.create(cells.parent, MEMBER, order, key) == first
    assert len(cells.of("left")) == len(cells.of("leaf")) == 1


def test_the_life_of_a_lease_over_cells(cells: CellFamily) -> None:
    lease = cells.make(hosts_wanted(5, across=True), start=None)
    cells.settle()
    assert cells.get(lease).status is LeaseStatus.ACTIVE
    assert {cells.of(name)[0].status for name in ("left", "leaf")} == {LeaseStatus.ACTIVE}
    cells.clock.forward(hours=2)
    cells.settle(90)
    over = cells.get(lease)
    assert (over.status, {part.state for part in over.parts}) == (LeaseStatus.TERMINATED, {"released"})
    assert all(cells.free(name) for name in cells.sites)
    cells.check()


@pytest.mark.parametrize("start", [None, 1])
def test_a_deletion_is_over_all_parts(cells: CellFamily, start: float | None) -> None:
    lease = cells.make(hosts_wanted(5, across=True), start=start)
    cells.settle()
    assert leases.delete(cells.parent, MEMBER, lease.id).status is LeaseStatus.DELETING
    cells.settle(60)
    with pytest.raises(NotFound):
        cells.get(lease)
    assert all(cells.free(name) for name in cells.sites)


def test_a_deletion_waits_for_a_cell_that_is_silent(cells: CellFamily) -> None:
    lease = cells.make(hosts_wanted(2, cell="left"))
    cells.spoils["left"] = lost_before
    leases.delete(cells.parent, MEMBER, lease.id)
    cells.settle(30)
    assert cells.get(lease).status is LeaseStatus.DELETING
    cells.spoils.clear()
    cells.settle(300)
    with pytest.raises(NotFound):
        cells.get(lease)
    assert cells.free("left")


# Other dates.


def change(cells: CellFamily, lease: Lease, **wanted: Any) -> Lease:
    return tree_leases.update(cells.parent, MEMBER, lease.id, Changes(**wanted))


def ends(cells: CellFamily) -> set[Any]:
    return {lease.period.end for name in cells.sites for lease in cells.of(name)}


def test_prolonged_and_shortened_over_all_parts(cells: CellFamily) -> None:
    lease = cells.make(hosts_wanted(5, across=True))
    for hours in (5, -2):
        end = cells.get(lease).period.end + timedelta(hours=hours)
        assert change(cells, lease, end=end).period.end == end
        cells.settle()
        assert ends(cells) == {end}
    with pytest.raises(Conflict, match="only the name"):
        change(cells, lease, start=lease.period.start + timedelta(minutes=5))
    with pytest.raises(Conflict, match="cannot be changed"):
        change(cells, lease, reservations=[{"id": str(lease.reservations[0].id), "cell": "left"}])
    cells.check()


def test_a_prolongation_that_one_cell_refuses_leaves_all_as_they_were(cells: CellFamily) -> None:
    lease = cells.make(hosts_wanted(5, across=True))
    cells.take("leaf", 3, start=4, hours=2)
    with pytest.raises(Conflict, match=f"cell {LEAF}"):
        change(cells, lease, end=lease.period.end + timedelta(hours=3))
    cells.settle()
    assert cells.get(lease).period == lease.period
    assert {one.period.end for one in cells.of("left")} == {lease.period.end}
    cells.check()


def test_an_early_end_is_over_all_parts(cells: CellFamily) -> None:
    lease = cells.make(hosts_wanted(5, across=True), start=None)
    cells.settle()
    change(cells, lease, end_now=True)
    cells.settle(90)
    assert cells.get(lease).status is LeaseStatus.TERMINATED
    assert all(cells.free(name) for name in cells.sites)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", some(range(1, 3), 1))
def test_a_parent_that_dies_while_it_prolongs_leaves_one_end(cells: CellFamily, number: int, after: bool) -> None:
    lease = cells.make(hosts_wanted(5, across=True))
    with cells.dying(number, after=after), suppress(Died):
        change(cells, lease, end=lease.period.end + timedelta(hours=1))
    cells.settle(LONG)
    assert len(ends(cells)) == 1
    cells.check()


# Faults.


def attempt(cells: CellFamily) -> Lease | None:
    """Ask for a lease over two cells, whatever comes of it."""
    try:
        return cells.make(hosts_wanted(5, across=True))
    except (ClimateError, Died):
        return None


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("number", some(range(1, 5), 3))
def test_a_top_that_dies_leaves_all_or_nothing(cells: CellFamily, number: int, after: bool) -> None:
    """At each talk with the cells: the offers, the holds, the confirmations; and not at all."""
    with cells.dying(number, after=after):
        made = attempt(cells)
    cells.settle(LONG)
    assert cells.all_or_nothing() is (made is not None)
    assert (made is None) is (number < 4)


@pytest.mark.parametrize("number", some(range(1, 8), 4))
def test_a_top_that_dies_as_it_records_leaves_all_or_nothing(cells: CellFamily, number: int) -> None:
    with cells.dying_at_record(number):
        made = attempt(cells)
    cells.settle(LONG)
    assert cells.all_or_nothing() is (made is not None)


@pytest.mark.parametrize("times", some(range(1, 3), 1))
@pytest.mark.parametrize("how", [lost_before, lost_after])
@pytest.mark.parametrize("action", ["Hold", "Confirm"])
def test_a_message_that_is_lost_leaves_all_or_nothing(cells: CellFamily, action: str, how: Spoil, times: int) -> None:
    """Before the cell has done what it was asked for, or after; once, or until it is mended."""
    cells.spoils["leaf"] = only(action, how, times if times == 1 else 99)
    made = attempt(cells)
    cells.settle(LONG)
    cells.spoils.clear()
    cells.settle(300)
    assert cells.all_or_nothing() is (made is not None)
    assert (made is not None) is (action == "Confirm" and times == 1)


def test_messages_that_come_twice_change_nothing(cells: CellFamily) -> None:
    for name in ("left", "right", "leaf"):
        cells.spoils[name] = twice
    lease = cells.make(hosts_wanted(5, across=True))
    end = lease.period.end + timedelta(hours=1)
    change(cells, lease, end=end)
    cells.settle()
    assert ends(cells) == {end}
    assert cells.all_or_nothing()
    leases.delete(cells.parent, MEMBER, lease.id)
    cells.settle(90)
    assert all(cells.free(name) for name in cells.sites)


def test_a_cell_that_gives_its_offer_away_is_passed_over(cells: CellFamily) -> None:
    taken: list[Lease] = []

    def spoil(said: dict[str, Any], go: Callable[[], Any]) -> Any:
        answer = go()
        if said["action"] == "Offer" and not taken:
            taken.append(cells.take("leaf", 2))
        return answer

    cells.spoils["leaf"] = spoil
    assert cells.parts(cells.make(hosts_wanted(2))) == [(LEFT, 2, "confirmed")]
    assert len(cells.of("leaf")) == 1


def test_what_is_held_too_long_is_given_back_by_all(cells: CellFamily) -> None:
    held = replace(cells.order(hosts_wanted(5, across=True)), hold=timedelta(seconds=60))
    lease = tree_leases.create(cells.parent, MEMBER, held)
    assert (lease.status, {part.state for part in lease.parts}) == (LeaseStatus.HELD, {"held"})
    assert {cells.of(name)[0].status for name in ("left", "leaf")} == {LeaseStatus.HELD}
    cells.settle(120)
    assert all(cells.free(name) for name in cells.sites)
    with pytest.raises(Conflict, match="expired"):
        tree_leases.confirm(cells.parent, MEMBER, lease.id)


# Late messages.


def ask(cells: CellFamily, name: str, action: Any, project_id: str = MEMBER.project_id) -> Any:
    """Send a message of the top to a cell; the outcome."""
    request = PartRequest(Child("cell", 0, PATHS[name]), Asker(project_id, "admin"), action)
    (outcome,) = cells.parent.cells.ask_all([request])
    return outcome


def test_a_hold_that_comes_late_keeps_nothing(cells: CellFamily) -> None:
    """The message waits in the cell until the top has given up."""
    kept: list[Callable[[], Any]] = []

    def keep(said: dict[str, Any], go: Callable[[], Any]) -> Any:
        kept.append(go)
        return lost_before(said, go)

    cells.spoils["leaf"] = only("Hold", keep)
    assert attempt(cells) is None
    cells.settle(LONG)
    assert kept[0]() == {"verdict": "refused", "reason": "TooLate", "lease": None}
    assert cells.of("leaf") == []
    assert not cells.all_or_nothing()


def test_a_prolongation_that_comes_late_changes_nothing(cells: CellFamily) -> None:
    """It was given up at the top, and the events have told the cells the old end since."""
    kept: list[Callable[[], Any]] = []

    def keep(said: dict[str, Any], go: Callable[[], Any]) -> Any:
        kept.append(go)
        return lost_before(said, go)

    lease = cells.make(hosts_wanted(2, cell="left"))
    cells.spoils["left"] = only("Prolong", keep)
    with pytest.raises(ClimateError):
        change(cells, lease, end=lease.period.end + timedelta(hours=1))
    cells.settle()
    assert kept[0]() == {"verdict": "refused", "reason": "Outdated", "lease": None}
    assert ends(cells) == {lease.period.end}


def test_a_confirmation_that_comes_late_revives_nothing(cells: CellFamily) -> None:
    held = replace(cells.order(hosts_wanted(1, cell="left")), hold=timedelta(seconds=60))
    (part,) = tree_leases.create(cells.parent, MEMBER, held).parts
    assert part.lease_id
    cells.settle(120)
    assert ask(cells, "left", Confirm(part.lease_id, str(part.id))).verdict is Verdict.GONE
    assert cells.free("left")


def test_the_account_of_the_top_touches_its_own_leases_only(cells: CellFamily) -> None:
    theirs = cells.take("left", 1)
    for action in (
        Look(theirs.id, 1),
        Release(theirs.id),
        Prolong(theirs.id, theirs.period.end, 1),
        Confirm(uuid4(), "k"),
    ):
        assert ask(cells, "left", action).verdict is Verdict.GONE
    ours = cells.make(hosts_wanted(1, cell="left"))
    (part,) = ours.parts
    assert part.lease_id
    assert ask(cells, "left", Look(part.lease_id, 9), project_id="another").verdict is Verdict.GONE
    assert {lease.id for lease in cells.of("left")} == {theirs.id, part.lease_id}


def test_a_cell_hears_of_its_own_part_only(cells: CellFamily) -> None:
    lease = cells.make(hosts_wanted(5, across=True))
    told = {name: json.dumps([said for cell, said in cells.heard if cell == name]) for name in ("left", "leaf")}
    for part in lease.parts:
        other = "left" if part.cell == LEAF else "leaf"
        assert str(part.id) in told[part.cell.rpartition("!")[2]]
        assert str(part.id) not in told[other]
        assert str(part.lease_id) not in told[other]
    everything = "".join(told.values())
    for secret in (str(lease.id), str(lease.reservations[0].id), MEMBER.user_id, "top!left", "top!right"):
        assert secret not in everything
    said = json.dumps([str(entry.fact) for entry in leases.history(cells.parent, ADMIN, lease.id)])
    assert "leaf-n1" not in said


# Servers.


def boot(cells: CellFamily, reservation: str, **changes: Any) -> str:
    cells.settle()
    with cells.running():
        return cells.app().booted({"reservation": reservation}, **changes)


def at_top(cells: CellFamily, server_id: str, status: str) -> dict[str, Any]:
    """The server as the top shows it, once it has this status."""
    cells.flow()
    while True:
        shown: dict[str, Any] = cells.app().get(f"/compute/v2.1/servers/{server_id}")["server"]
        if shown["status"] == status:
            return shown
        assert shown["status"] in ("BUILD", "RESERVED"), shown
        cells.settle()
        cells.flow()


def wire_order(cells: CellFamily, **wanted: Any) -> dict[str, Any]:
    end = cells.now() + timedelta(hours=2)
    one = hosts_wanted(wanted.pop("least", 2), **wanted)
    return {"name": "l", "start_date": "now", "end_date": f"{end:%Y-%m-%d %H:%M}", "reservations": [one]}


def test_a_server_is_booted_in_the_cell_of_the_part(cells: CellFamily) -> None:
    answer = cells.app()("POST", "/reservation/v1/leases", wire_order(cells, least=1, cell="right"))
    assert answer.status_code == 201, answer.get_data(as_text=True)
    (one,) = answer.get_json()["lease"]["reservations"]
    assert [(part["cell"], part["state"], part["hosts"]) for part in one["parts"]] == [(RIGHT, "confirmed", 1)]
    assert "zone" not in one["parts"][0]
    server_id = boot(cells, one["id"])
    at_top(cells, server_id, "ACTIVE")
    assert cells.site("right").look(server_id).node == "right-n1"
    assert cells.app()("DELETE", f"/reservation/v1/leases/{one['lease_id']}").status_code == 204
    cells.settle(60)
    assert cells.app()("GET", f"/reservation/v1/leases/{one['lease_id']}").status_code == 404
    assert cells.free("right")
    assert cells.site("right").count("compute_servers") == 0


def test_servers_go_where_the_lease_has_room(cells: CellFamily) -> None:
    """Each of its three hosts has room for two servers of 4 GB."""
    answer = cells.app()("POST", "/reservation/v1/leases", wire_order(cells, least=6, across=True))
    assert answer.status_code == 201, answer.get_data(as_text=True)
    (one,) = answer.get_json()["lease"]["reservations"]
    assert len(one["parts"]) == 3
    made = []
    for _ in range(12):
        made.append(boot(cells, one["id"], flavorRef="h"))
        at_top(cells, made[-1], "ACTIVE")
    counts = {name: cells.site(name).count("compute_servers", "status = 'ACTIVE'") for name in PATHS}
    assert counts == {"left": 4, "right": 2, "leaf": 6}
    with cells.running():
        refused = cells.app().boot({"reservation": one["id"]}, flavorRef="h")
    assert refused.status_code == 409
    assert "No cell of the lease has room" in refused.get_data(as_text=True)


def test_a_lease_that_has_not_started_is_refused_at_the_top(cells: CellFamily) -> None:
    lease = cells.make(hosts_wanted(1), start=1)
    answer = cells.app().boot({"reservation": str(lease.reservations[0].id)})
    assert answer.status_code == 409
    assert "starts at" in answer.get_data(as_text=True)


def test_another_project_cannot_boot_on_the_part(cells: CellFamily) -> None:
    order = cells.order(hosts_wanted(1, cell="right"), start=None)
    (part,) = tree_leases.create(cells.parent, replace(MEMBER, project_id="another"), order).parts
    cells.settle()
    cells.report()
    server_id = cells.app().booted({"reservation": str(part.reservation_id)})
    fault = at_top(cells, server_id, "ERROR")["fault"]["message"]
    assert "not found" in fault
    assert cells.site("right").count("compute_servers") == 0


def test_a_server_that_sleeps_does_so_in_the_cell_that_was_chosen(cells: CellFamily) -> None:
    start, end = cells.now() + timedelta(hours=1), cells.now() + timedelta(hours=2)
    params = {"name": "nap", "start": f"{start:%Y-%m-%d %H:%M}", "end": f"{end:%Y-%m-%d %H:%M}"}
    server_id = cells.app().booted({"reserved": True, "lease_params": params})
    at_top(cells, server_id, "RESERVED")
    assert cells.site("leaf").look(server_id).node == ORDINARY
    (lease,) = cells.of("leaf")
    assert (lease.project_id, lease.reservations[0].resource_id) == (MEMBER.project_id, server_id)
    assert cells.of("top") == []
    cells.clock.forward(hours=1)
    cells.settle(60)
    at_top(cells, server_id, "ACTIVE")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"cell": ""}, "cell"),
        ({"cell": 3}, "cell"),
        ({"cell": "a.b"}, "cell"),
        ({"cell": "top!"}, "cell"),
        ({"cell": "x" * 65}, "cell"),
        ({"cell": "top!" * 300 + "x"}, "cell"),
        ({"cell": "http://169.254.169.254"}, "cell"),
        ({"cell": "nowhere"}, "nowhere"),
        ({"cell": "left", "zone": "z"}, "cannot both"),
        ({"cell": "left", "across": "yes"}, "across"),
    ],
)
def test_what_is_no_cell(cells: CellFamily, wrong: dict[str, Any], said: str) -> None:
    answer = cells.app()("POST", "/reservation/v1/leases", wire_order(cells, **wrong))
    assert answer.status_code == 400
    assert said in answer.get_json()["error_message"]
