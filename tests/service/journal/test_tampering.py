"""A command folds the journal before it writes: rows that somebody has changed by hand become no facts."""

from collections.abc import Callable

import pytest
from sqlalchemy import Engine, text

from climate.context import Climate
from climate.domain.errors import Tampered
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease
from climate.service.host_operations import failures, pool_moves
from climate.service.host_operations.pool_moves import RequestedMove
from climate.service.hosts import reservable
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import rebuild
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.lease_actions import make, rows, run_due

LEASES: dict[str, Callable[[Climate, Lease], object]] = {
    "rename": lambda climate, lease: update.update(climate, MEMBER, lease.id, Changes(name="n")),
    "prolong": lambda climate, lease: update.update(
        climate, MEMBER, lease.id, Changes(end=lease.period.end + (lease.period.end - lease.period.start))
    ),
    "delete": lambda climate, lease: leases.delete(climate, MEMBER, lease.id),
}


@pytest.mark.parametrize("command", LEASES.values(), ids=LEASES)
@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ("UPDATE leases SET name = 'forged'", "name"),
        ("UPDATE leases SET end_date = end_date + interval '1 minute'", "period"),
        ("UPDATE leases SET user_id = 'forged'", "user_id"),
        ("UPDATE reservations SET spec = spec || '{\"max\": 8}'", "reservations"),
        ("UPDATE allocations SET host = 1 + host % 8", "reservations"),
        ("UPDATE events SET due_at = due_at + interval '1 minute'", "events"),
    ],
)
def test_no_command_makes_facts_of_a_forged_lease(
    climate: Climate, clock: Clock, engine: Engine, command: Callable[..., object], damage: str, named: str
) -> None:
    lease = make(climate, clock)
    with engine.begin() as conn:
        conn.execute(text(damage))
    before = rows(engine)
    with pytest.raises(Tampered, match=rf"not what its journal says \(.*{named}.*\): nothing was changed"):
        command(climate, lease)
    assert rows(engine) == before
    rebuild(climate)
    command(climate, lease)
    assert consistency_check.differences(climate) == []


HOSTS: dict[str, Callable[[Climate], object]] = {
    "close": lambda climate: reservable.open_to_promises(climate, ADMIN, "3", False),
    "move": lambda climate: pool_moves.move(climate, ADMIN, RequestedMove(("3",), Pool.MULTI_TENANT)),
    "fail": lambda climate: failures.fail(climate, ADMIN, "3", "smoke"),
}


@pytest.mark.parametrize("command", HOSTS.values(), ids=HOSTS)
@pytest.mark.parametrize(
    ("damage", "named"),
    [("pool_reason = 'forged'", "reason"), ("home = 'multi-tenant'", "home"), ("version = 7", "version")],
)
def test_no_command_makes_facts_of_a_forged_host(
    climate: Climate, engine: Engine, command: Callable[[Climate], object], damage: str, named: str
) -> None:
    with engine.begin() as conn:
        conn.execute(text(f"UPDATE hosts SET {damage} WHERE id = 3"))
    before = rows(engine)
    with pytest.raises(Tampered, match=rf"The rows of host h3 are not what its journal says \({named}\)"):
        command(climate)
    assert rows(engine) == before
    rebuild(climate)
    command(climate)
    assert consistency_check.differences(climate) == []


def test_a_lease_whose_rows_were_forged_still_ends(climate: Climate, clock: Clock, engine: Engine) -> None:
    """Workers say what became of an event, and nothing that they have read: hosts come back all the same."""
    lease = make(climate, clock, start=0, hours=1)
    run_due(climate)
    with engine.begin() as conn:
        conn.execute(text("UPDATE leases SET name = 'forged'"))
    clock.forward(hours=1)
    run_due(climate)
    assert leases.get(climate, ADMIN, lease.id).status == "TERMINATED"
    rebuild(climate)
    assert leases.get(climate, ADMIN, lease.id).name == "l"
