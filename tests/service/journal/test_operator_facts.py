"""What administrators decide about pools and projects is journaled, with its author, and can be looked back on."""

from datetime import timedelta

import pytest
from sqlalchemy import Engine, text

from climate.context import Climate
from climate.domain.errors import Tampered
from climate.domain.hosts.pools import Pool
from climate.domain.limits import Limit
from climate.service.admission import limits
from climate.service.host_operations import pools
from climate.service.journal import consistency_check
from climate.service.journal.rebuild import rebuild
from tests.conftest import ADMIN, MEMBER, Clock


@pytest.fixture
def decided(climate: Climate, clock: Clock) -> Climate:
    """Terms and limits that were set in two steps, an hour apart."""
    pools.change(climate, ADMIN, Pool.RESERVATION, {"target": 4, "on_end": "recycle"})
    limits.put(climate, ADMIN, "project", {Limit.LEASES: 3, Limit.HOST_HOURS: 50})
    limits.put(climate, ADMIN, "", {Limit.LEASES: 9})
    clock.forward(hours=1)
    pools.change(climate, ADMIN, Pool.RESERVATION, {"target": None, "grace_period": 60})
    limits.put(climate, ADMIN, "project", {Limit.LEASES: None, Limit.HELD_LEASES: 2})
    return climate


def test_terms_are_facts_with_their_author(decided: Climate, clock: Clock) -> None:
    first, second = pools.history(decided, ADMIN, Pool.RESERVATION)
    assert first.actor["user_id"] == second.actor["user_id"] == ADMIN.user_id
    assert (first.version, second.version, first.request_id) == (1, 2, ADMIN.request_id)
    standing = pools.get(decided, ADMIN, Pool.RESERVATION)
    assert standing.own == {"on_end", "grace_period"}
    before = pools.get(decided, ADMIN, Pool.RESERVATION, at=clock.time - timedelta(minutes=1))
    assert before.terms is not None
    assert (before.terms.target, before.terms.on_end, before.own) == (4, "recycle", {"target", "on_end"})
    assert pools.get(decided, ADMIN, Pool.RESERVATION, at=clock.time - timedelta(hours=2)).own == frozenset()


def test_limits_are_facts_with_their_author(decided: Climate, clock: Clock) -> None:
    entries = limits.history(decided, ADMIN, "project")
    assert [(entry.version, entry.actor["user_id"]) for entry in entries] == [(1, "admin-user"), (2, "admin-user")]

    def at(hours: float) -> dict[str, tuple[int | None, str | None]]:
        found = limits.at(decided, MEMBER, clock.time - timedelta(hours=hours))
        return {str(one.limit): (one.value, one.project_id) for one in found if one.value is not None}

    assert at(0) == {"leases": (9, ""), "host_hours": (50, "project"), "held_leases": (2, "project")}
    assert at(0.5) == {"leases": (3, "project"), "host_hours": (50, "project")}
    assert at(2) == {}
    assert limits.drop(decided, ADMIN, "project") == 2
    assert limits.drop(decided, ADMIN, "project") == 0
    assert at(0) == {"leases": (9, "")}
    assert consistency_check.differences(decided) == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            "UPDATE pool_terms SET on_end = 'release'",
            "pool_terms pool=reservation: on_end: rows say 'release', facts say 'recycle'",
        ),
        ("DELETE FROM pool_terms", "pool_terms pool=reservation: no row, facts say that there is one"),
        (
            "UPDATE limits SET value = 99 WHERE project_id = 'project'",
            "limits project_id=project, name=host_hours: value: rows say 99, facts say 50",
        ),
        (
            "DELETE FROM limits WHERE project_id = ''",
            "limits project_id=, name=leases: no row, facts say that there is one",
        ),
        ("INSERT INTO limits VALUES ('third', 'leases', 1, now())", "has rows but no journal"),
    ],
)
def test_forged_rows_are_found_and_recreated(decided: Climate, engine: Engine, damage: str, said: str) -> None:
    def everything() -> list[str]:
        with engine.connect() as conn:
            return [str(row) for table in ("pool_terms", "limits") for row in conn.execute(text(f"TABLE {table}"))]

    before = sorted(everything())
    with engine.begin() as conn:
        assert conn.execute(text(damage)).rowcount
    assert said in [one.what for one in consistency_check.differences(decided)]
    rebuild(decided)
    assert consistency_check.differences(decided) == []
    assert sorted(everything()) == before


def test_no_decision_is_taken_on_forged_rows(decided: Climate, engine: Engine) -> None:
    with engine.begin() as conn:
        conn.execute(text("UPDATE pool_terms SET on_end = 'release'"))
        conn.execute(text("UPDATE limits SET value = 99"))
    with pytest.raises(Tampered, match=r"The rows of the pool reservation are not what its journal says \(on_end\)"):
        pools.change(decided, ADMIN, Pool.RESERVATION, {"target": 1})
    with pytest.raises(Tampered, match=r"The rows of the limits of project .*\(held_leases, host_hours\)"):
        limits.put(decided, ADMIN, "project", {Limit.LEASES: 1})
    with pytest.raises(Tampered, match="the limits of all projects"):
        limits.drop(decided, ADMIN, "")


def test_a_dry_run_leaves_no_fact(decided: Climate) -> None:
    pools.change(decided, ADMIN, Pool.RESERVATION, {"target": 7}, dry_run=True)
    limits.put(decided, ADMIN, "project", {Limit.LEASES: 7}, dry_run=True)
    limits.drop(decided, ADMIN, "project", dry_run=True)
    assert len(pools.history(decided, ADMIN, Pool.RESERVATION)) == len(limits.history(decided, ADMIN, "project")) == 2
