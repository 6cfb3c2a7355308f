"""Leases over a tree of cells: the hosts of one cell or of several, changed and ended as one lease."""

import json
from datetime import timedelta
from typing import Any

import pytest

from climate.domain.errors import ClimateError, Conflict, InvalidInput, NotEnoughHosts, NotFound
from climate.domain.status import LeaseStatus
from climate.service.lease_tree import leases as tree_leases
from climate.service.leases import leases
from climate.store.idempotency import Key
from tests.conftest import MEMBER
from tests.service.cell_tree import LEAF, LEFT, RIGHT, CellFamily, lost_before
from tests.service.deployments import hosts_wanted


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


def test_refusal_names_the_cell_that_did_not_answer(cells: CellFamily) -> None:
    cells.spoils["left"] = lost_before
    with pytest.raises(NotEnoughHosts, match=f"no answer from cell {LEFT}$"):
        cells.make(hosts_wanted(2, cell="left"))
    with pytest.raises(NotEnoughHosts, match=f"no answer from cell {LEFT}$"):
        cells.make(hosts_wanted(4))


# Other dates.


def test_prolonged_and_shortened_over_all_parts(cells: CellFamily) -> None:
    lease = cells.make(hosts_wanted(5, across=True))
    for hours in (5, -2):
        end = cells.get(lease).period.end + timedelta(hours=hours)
        assert cells.change(lease, end=end).period.end == end
        cells.settle()
        assert cells.ends() == {end}
    with pytest.raises(Conflict, match="only the name"):
        cells.change(lease, start=lease.period.start + timedelta(minutes=5))
    with pytest.raises(Conflict, match="cannot be changed"):
        cells.change(lease, reservations=[{"id": str(lease.reservations[0].id), "cell": "left"}])
    cells.check()


def test_a_prolongation_that_one_cell_refuses_leaves_all_as_they_were(cells: CellFamily) -> None:
    lease = cells.make(hosts_wanted(5, across=True))
    cells.take("leaf", 3, start=4, hours=2)
    with pytest.raises(Conflict, match=f"cell {LEAF}"):
        cells.change(lease, end=lease.period.end + timedelta(hours=3))
    cells.settle()
    assert cells.get(lease).period == lease.period
    assert {one.period.end for one in cells.of("left")} == {lease.period.end}
    cells.check()


def test_an_early_end_is_over_all_parts(cells: CellFamily) -> None:
    lease = cells.make(hosts_wanted(5, across=True), start=None)
    cells.settle()
    cells.change(lease, end_now=True)
    cells.settle(90)
    assert cells.get(lease).status is LeaseStatus.TERMINATED
    assert all(cells.free(name) for name in cells.sites)


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
    answer = cells.app()("POST", "/reservation/v1/leases", cells.wire_order(**wrong))
    assert answer.status_code == 400
    assert said in answer.get_json()["error_message"]
