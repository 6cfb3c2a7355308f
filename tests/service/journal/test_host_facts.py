"""Capabilities of hosts and the settings of their power are facts of the hosts, with an author."""

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from climate.context import Climate
from climate.domain.errors import NotFound, Tampered
from climate.service.hosts import inventory, reservable
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import rebuild
from climate.service.power import power
from climate.service.power.power import Wiring
from tests.conftest import ADMIN, Clock
from tests.service.fake_power import PASSWORD, Machines, machines


@pytest.fixture
def room(climate: Climate, clock: Clock, tmp_path: Path) -> Machines:
    return machines(climate, clock, tmp_path)


def facts(climate: Climate, number: int) -> list[tuple[str, str]]:
    entries = reservable.history(climate, ADMIN, str(number))
    return [(type(entry.fact).__name__, entry.actor["user_id"]) for entry in entries]


def test_capabilities_are_facts_and_can_be_looked_back_on(climate: Climate, clock: Clock) -> None:
    clock.forward(hours=1)
    inventory.update(climate, ADMIN, "5", {"gpu_count": "4", "rack": "r1"})
    clock.forward(hours=1)
    inventory.update(climate, ADMIN, "5", {"rack": None})
    assert facts(climate, 5) == [("HostEnrolled", "admin-user"), *[("HostDescribed", "admin-user")] * 2]

    def at(hours: float) -> dict[str, str]:
        return dict(inventory.get(climate, ADMIN, "5", at=clock.time - timedelta(hours=hours)).extra)

    assert (at(0), at(0.5), at(1.5)) == ({"gpu_count": "4"}, {"gpu_count": "4", "rack": "r1"}, {"gpu_count": "2"})
    with pytest.raises(NotFound):
        at(3)
    assert consistency_check.differences(climate) == []


def test_power_settings_are_facts_without_their_secrets(room: Machines) -> None:
    climate = room.climate
    room.wire(4)
    room.wire(4, boot_seconds=5)
    power.clear(climate, ADMIN, "4", force=True)
    assert facts(climate, 4)[1:] == [
        (kind, "admin-user") for kind in ("HostPowerSet", "HostPowerSet", "HostPowerCleared")
    ]
    with climate.engine.connect() as conn:
        journal = str(conn.execute(text("SELECT jsonb_agg(body) FROM journal")).scalar_one())
    assert PASSWORD not in journal
    assert "'boot_seconds': 5" in journal
    assert consistency_check.differences(climate) == []


def test_a_host_that_is_removed_is_no_longer_switched(room: Machines) -> None:
    room.wire(4)
    inventory.remove(room.climate, ADMIN, "4")
    assert [kind for kind, _ in facts(room.climate, 4)][-2:] == ["HostPowerCleared", "HostRemoved"]
    assert consistency_check.differences(room.climate) == []


DAMAGES = [
    ("""UPDATE hosts SET extra = '{"gpu_count": "9"}' WHERE id = 5""", "extra"),
    ("UPDATE hosts SET extra = '{}' WHERE id = 5", "extra"),
    ("UPDATE host_power SET driver = 'forged'", "driver"),
    ("UPDATE host_power SET watts = 1", "watts"),
    ("DELETE FROM host_power", ""),
]
COLUMNS = "SELECT h.id, extra, driver, settings, watts, secrets <> '' FROM hosts h LEFT JOIN host_power ON host = h.id"


@pytest.mark.parametrize(("damage", "named"), DAMAGES)
def test_forged_rows_become_no_facts_and_are_recreated(room: Machines, engine: Engine, damage: str, named: str) -> None:
    climate = room.climate
    room.wire(5)
    with engine.begin() as conn:
        before = conn.execute(text(f"{COLUMNS} ORDER BY h.id")).all()
        assert conn.execute(text(damage)).rowcount
    assert [one.column for one in consistency_check.differences(climate)] == [named]
    field = "extra" if named == "extra" else "power"
    with pytest.raises(Tampered, match=rf"The rows of host h5 are not what its journal says \({field}\)"):
        inventory.update(climate, ADMIN, "5", {"rack": "r1"})
    with pytest.raises(Tampered):
        power.put(climate, ADMIN, "5", Wiring("memory", {}))
    left = rebuild(climate).left
    with engine.connect() as conn:
        after = conn.execute(text(f"{COLUMNS} ORDER BY h.id")).all()
    assert [row[:5] for row in after] == [row[:5] for row in before]
    lost = damage.startswith("DELETE")  # with the secrets, which no fact has
    assert [one.column for one in left] == (["secrets"] if lost else [])
    assert (after == before) != lost


def test_a_dry_run_leaves_no_fact(room: Machines) -> None:
    inventory.update(room.climate, ADMIN, "5", {"rack": "r1"}, dry_run=True)
    power.put(room.climate, ADMIN, "5", Wiring("memory", {}), dry_run=True)
    assert facts(room.climate, 5) == [("HostEnrolled", "admin-user")]
