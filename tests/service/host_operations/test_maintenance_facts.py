"""Maintenance windows are facts: planned, changed, begun and closed, with an author, and can be looked back on."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import Engine, text

from climate.context import Climate
from climate.domain.errors import NotFound, Tampered
from climate.service.host_operations import maintenance
from climate.service.host_operations.maintenance import Changes, WindowRequest
from climate.service.hosts import inventory
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import rebuild
from tests.conftest import ADMIN, Clock

HOUR = timedelta(hours=1)


def planned(climate: Climate, clock: Clock, host: str = "3", start: int = 1) -> UUID:
    begin = clock.time + start * HOUR
    return maintenance.plan(climate, ADMIN, WindowRequest(host, begin, begin + 2 * HOUR, "new memory")).window.id


def story(climate: Climate, window_id: UUID) -> list[tuple[str, str]]:
    entries = maintenance.history(climate, ADMIN, window_id)
    assert [entry.version for entry in entries] == list(range(1, len(entries) + 1))
    return [(type(entry.fact).__name__, str(entry.actor["user_id"])) for entry in entries]


def test_the_life_of_a_window(climate: Climate, clock: Clock) -> None:
    window_id, made = planned(climate, clock), clock.time
    clock.forward(minutes=10)
    maintenance.change(climate, ADMIN, window_id, Changes(reason="new disks"))
    clock.forward(minutes=50)
    maintenance.run_round(climate)
    clock.forward(minutes=1)
    maintenance.end(climate, ADMIN, window_id)
    assert story(climate, window_id) == [
        ("WindowPlanned", "admin-user"),
        ("WindowChanged", "admin-user"),
        ("WindowBegun", "climate:rounds"),
        ("WindowClosed", "admin-user"),
    ]

    def at(minutes: float) -> tuple[str, str]:
        window = maintenance.get(climate, ADMIN, window_id, at=made + timedelta(minutes=minutes))
        return window.reason, str(window.state)

    assert (at(5), at(30)) == (("new memory", "planned"), ("new disks", "planned"))
    assert (at(60), at(61)) == (("new disks", "active"), ("new disks", "done"))
    with pytest.raises(NotFound):
        at(-1)
    assert consistency_check.differences(climate) == []


def test_windows_that_nobody_ends_and_those_of_hosts_that_go(climate: Climate, clock: Clock) -> None:
    over, gone = planned(climate, clock), planned(climate, clock, "4", 8)
    clock.forward(hours=1)
    maintenance.run_round(climate)
    clock.forward(hours=2)
    maintenance.run_round(climate)
    inventory.remove(climate, ADMIN, "4")
    assert story(climate, over)[-1] == ("WindowClosed", "climate:rounds")
    assert story(climate, gone)[-1] == ("WindowClosed", "admin-user")
    assert consistency_check.differences(climate) == []


def allocated(engine: Engine) -> list[str]:
    query = "SELECT host, during, state, window_id FROM allocations WHERE kind = 'maintenance' ORDER BY window_id"
    with engine.connect() as conn:
        windows = conn.execute(text("SELECT host, during, reason, state FROM maintenance_windows ORDER BY id"))
        return [str(row) for row in (*conn.execute(text(query)), *windows)]


COMMANDS: list[Callable[[Climate, UUID], object]] = [
    lambda climate, window_id: maintenance.change(climate, ADMIN, window_id, Changes(reason="n")),
    lambda climate, window_id: maintenance.end(climate, ADMIN, window_id),
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ("reason = 'forged'", "reason"),
        ("host = 5", "host"),
        ("state = 'active'", "state"),
        ("during = tstzrange(lower(during), upper(during) + interval '1 hour')", "during"),
    ],
)
def test_forged_windows_become_no_facts_and_are_recreated(
    climate: Climate, clock: Clock, engine: Engine, command: Callable[..., object], damage: str, named: str
) -> None:
    window_id = planned(climate, clock)
    planned(climate, clock, "6")
    before = allocated(engine)
    with engine.begin() as conn:
        conn.execute(text(f"UPDATE maintenance_windows SET {damage} WHERE id = :id"), {"id": window_id})
    assert [one.column for one in consistency_check.differences(climate)] == [named]
    with pytest.raises(Tampered, match=rf"maintenance window {window_id} are not what its journal says \({named}\)"):
        command(climate, window_id)
    rebuild(climate)
    assert allocated(engine) == before
    command(climate, window_id)
    assert consistency_check.differences(climate) == []


def test_lost_windows_come_back(climate: Climate, clock: Clock, engine: Engine) -> None:
    window_id = planned(climate, clock)
    clock.forward(hours=1)
    maintenance.run_round(climate)
    before = allocated(engine)
    with engine.begin() as conn:
        conn.execute(text("DELETE FROM allocations WHERE kind = 'maintenance'"))
        conn.execute(text("DELETE FROM maintenance_windows"))
    assert [one.what for one in consistency_check.differences(climate)] == ["has a journal but no rows"]
    rebuild(climate)
    assert allocated(engine) == before
    assert maintenance.get(climate, ADMIN, window_id).created_by == "admin-user"
