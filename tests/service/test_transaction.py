"""Transactions of the engine: arguments, commits, dry runs, retries and patience."""

import pytest
from sqlalchemy import Connection, text

from climate.context import Climate
from climate.domain.errors import Conflict, Unavailable
from climate.service.transaction import TRIES, allocate, run
from climate.store import locks
from climate.store.allocation.hosts import MustWait
from climate.store.hosts import hosts
from climate.store.locks import HostsInUse

CLASH = text("DO $$ BEGIN RAISE EXCEPTION 'two transactions conflict' USING ERRCODE = '40001'; END $$")

UNLOCKED = text("SELECT id FROM hosts FOR NO KEY UPDATE SKIP LOCKED")


def rename(conn: Connection, number: int, name: str, tries: list[int]) -> str:
    """Rename a host, and count the attempts."""
    tries.append(number)
    conn.execute(text("UPDATE hosts SET hypervisor_hostname = :name WHERE id = :id"), {"name": name, "id": number})
    return name


def clash(conn: Connection, tries: list[int], times: int) -> int:
    """Rename a host, and fail the first `times` attempts afterwards."""
    rename(conn, 1, f"try{len(tries)}", tries)
    if len(tries) <= times:
        conn.execute(CLASH)
    return len(tries)


def name_of(climate: Climate, number: int) -> str:
    return run(climate, hosts.get, number).name


def test_a_function_gets_its_arguments_and_its_result_is_committed(climate: Climate) -> None:
    tries: list[int] = []
    assert run(climate, rename, 1, "renamed", tries) == "renamed"
    assert (name_of(climate, 1), tries) == ("renamed", [1])


def test_a_dry_run_returns_the_result_and_changes_nothing(climate: Climate) -> None:
    assert run(climate, rename, 1, "renamed", [], keep=False) == "renamed"
    assert name_of(climate, 1) == "h1"


def test_an_error_leaves_nothing_behind(climate: Climate) -> None:
    def refuse(conn: Connection) -> None:
        rename(conn, 1, "renamed", [])
        raise Conflict("refused")

    with pytest.raises(Conflict, match="refused"):
        run(climate, refuse)
    assert name_of(climate, 1) == "h1"


def test_a_clash_is_retried_in_a_new_transaction(climate: Climate) -> None:
    assert run(climate, clash, [], 2) == 3
    assert name_of(climate, 1) == "try2"


def test_clashes_without_end_become_unavailable(climate: Climate) -> None:
    tries: list[int] = []
    with pytest.raises(Unavailable):
        run(climate, clash, tries, TRIES + 1)
    assert len(tries) == TRIES + 1
    assert name_of(climate, 1) == "h1"


def test_hosts_in_use_restart_the_transaction_with_these_hosts_locked_first(climate: Climate) -> None:
    free: list[set[int]] = []

    def meet(conn: Connection) -> None:
        locks.lock_hosts(conn, [5])
        with climate.engine.connect() as other:
            free.append(set(other.scalars(UNLOCKED)))
        if len(free) == 1:
            raise HostsInUse({2})

    run(climate, meet)
    assert [{2, 5} & each for each in free] == [{2}, set()]


def test_an_allocation_is_tried_without_patience_first(climate: Climate) -> None:
    tries: list[bool] = []

    def allocated(conn: Connection, patient: bool, wanted: int) -> int:
        tries.append(patient)
        return wanted

    assert allocate(climate, allocated, 3) == 3
    assert tries == [False]


def test_an_allocation_that_cannot_outlast_its_rivals_waits_for_them(climate: Climate) -> None:
    tries: list[bool] = []

    def crowded(conn: Connection, patient: bool) -> bool:
        tries.append(patient)
        if not patient:
            raise MustWait()
        return patient

    assert allocate(climate, crowded)
    assert tries == [False, True]


def test_a_dry_allocation_changes_nothing(climate: Climate) -> None:
    def renamed(conn: Connection, patient: bool, number: int) -> str:
        return rename(conn, number, "renamed", [])

    assert allocate(climate, renamed, 1, keep=False) == "renamed"
    assert name_of(climate, 1) == "h1"
