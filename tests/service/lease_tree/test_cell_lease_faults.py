"""Leases over a tree of cells are all or nothing, whoever dies at which step, and whichever message is lost."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from climate.cloud.children import Asker, Child, Confirm, Look, PartRequest, Prolong, Release, Verdict
from climate.domain.errors import ClimateError, Conflict
from climate.domain.lease import Lease
from climate.domain.status import LeaseStatus
from climate.service.lease_tree import leases as tree_leases
from climate.service.lease_tree.leases import HOLD
from climate.service.leases import leases
from tests.campaign import cases
from tests.conftest import ADMIN, MEMBER
from tests.service.cell_tree import LEAF, LEFT, PATHS, CellFamily, Spoil, lost_after, lost_before, only, twice
from tests.service.deployments import Died, hosts_wanted

LONG = HOLD.total_seconds() + 60


@pytest.mark.parametrize("after", cases([False, True], {True}))
@pytest.mark.parametrize("number", cases(range(1, 3), {1}))
def test_a_parent_that_dies_while_it_prolongs_leaves_one_end(cells: CellFamily, number: int, after: bool) -> None:
    lease = cells.make(hosts_wanted(5, across=True))
    with cells.dying(number, after=after), suppress(Died):
        cells.change(lease, end=lease.period.end + timedelta(hours=1))
    cells.settle(LONG)
    assert len(cells.ends()) == 1
    cells.check()


def attempt(cells: CellFamily) -> Lease | None:
    """Ask for a lease over two cells, whatever comes of it."""
    try:
        return cells.make(hosts_wanted(5, across=True))
    except (ClimateError, Died):
        return None


@pytest.mark.parametrize("after", cases([False, True], {True}))
@pytest.mark.parametrize("number", cases(range(1, 5), {3}))
def test_a_top_that_dies_leaves_all_or_nothing(cells: CellFamily, number: int, after: bool) -> None:
    """At each talk with the cells: the offers, the holds, the confirmations; and not at all."""
    with cells.dying(number, after=after):
        made = attempt(cells)
    cells.settle(LONG)
    assert cells.all_or_nothing() is (made is not None)
    assert (made is None) is (number < 4)


@pytest.mark.parametrize("number", cases(range(1, 8), {4}))
def test_a_top_that_dies_as_it_records_leaves_all_or_nothing(cells: CellFamily, number: int) -> None:
    with cells.dying_at_record(number):
        made = attempt(cells)
    cells.settle(LONG)
    assert cells.all_or_nothing() is (made is not None)


@pytest.mark.parametrize("times", cases(range(1, 3), {1}))
@pytest.mark.parametrize("how", cases([lost_before, lost_after], {lost_after}))
@pytest.mark.parametrize("action", cases(["Hold", "Confirm"], {"Hold"}))
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
    cells.change(lease, end=end)
    cells.settle()
    assert cells.ends() == {end}
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
    (outcome,) = cells.parent.cells.send_all([request])
    return outcome


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_prolongation_that_comes_late_changes_nothing(cells: CellFamily) -> None:
    """It was given up at the top, and the events have told the cells the old end since."""
    kept: list[Callable[[], Any]] = []

    def keep(said: dict[str, Any], go: Callable[[], Any]) -> Any:
        kept.append(go)
        return lost_before(said, go)

    lease = cells.make(hosts_wanted(2, cell="left"))
    cells.spoils["left"] = only("Prolong", keep)
    with pytest.raises(ClimateError):
        cells.change(lease, end=lease.period.end + timedelta(hours=1))
    cells.settle()
    assert kept[0]() == {"verdict": "refused", "reason": "Outdated", "lease": None}
    assert cells.ends() == {lease.period.end}


@pytest.mark.slow
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
