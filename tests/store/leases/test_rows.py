"""Which rows of leases are written: those that differ, found without comparing each with all others."""

from typing import Any

from climate.store.leases.rows import new_rows

HOSTS = 500


class CountedRow(dict[str, Any]):
    """A row that counts how often any is compared."""

    compared = 0

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        type(self).compared += 1
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other


def rows_of(lease: Any) -> list[dict[str, Any]]:
    """A row for each host of a lease that is here the state of its allocations, by host."""
    return [CountedRow(reservation_id=1, host=host, state=state) for host, state in lease.items()]


def test_rows_that_differ_are_found_in_linear_time() -> None:
    before = dict.fromkeys(range(HOSTS), "held")
    after = before | {7: "active", HOSTS: "held"}
    CountedRow.compared = 0
    found = new_rows([(before, after)], ("reservation_id", "host"), rows_of)  # type: ignore[list-item]
    assert found == [
        {"reservation_id": 1, "host": 7, "state": "active"},
        {"reservation_id": 1, "host": HOSTS, "state": "held"},
    ]
    assert CountedRow.compared <= HOSTS + 10


def test_a_new_lease_has_all_its_rows_written() -> None:
    found = new_rows([(None, {1: "held"})], ("reservation_id", "host"), rows_of)  # type: ignore[list-item]
    assert found == [{"reservation_id": 1, "host": 1, "state": "held"}]
