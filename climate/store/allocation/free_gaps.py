"""Gaps between the busy periods of many hosts, out of the packed timestamps of one statement.

A hundred thousand periods are decoded, sorted and counted as arrays. Python objects for each of them would take longer
than the statement.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from climate.domain.availability.daily_windows import Span
from climate.domain.availability.gaps import FAR, Steps

BEGINS = "string_agg(timestamptz_send(lower(during)), ''::bytea)"
ENDS = "string_agg(timestamptz_send(upper(during)), ''::bytea)"
"""SQL of the packed timestamps of one host, in any order."""

Packed = tuple[int, bytes | None, bytes | None]
"""Number of a host, the begins and the ends of its periods; None without any."""

_SECOND = 1_000_000
"""Microseconds, in which PostgreSQL sends a timestamp."""
_EPOCH = 946_684_800
"""Seconds from 1970 to 2000, from which PostgreSQL counts."""
_BITS = 41
"""Bits of a time in seconds; the place of its host stands above them."""

Numbers = NDArray[np.int64]


class PackedGaps:
    """Gaps of each host, as places of hosts, begins and ends, sorted by host and begin."""

    def __init__(self, numbers: Sequence[int], hosts: Numbers, begins: Numbers, ends: Numbers) -> None:
        self.numbers: Collection[int] = dict.fromkeys(numbers)
        self._numbers = np.array(numbers, np.int64)
        self._hosts, self._begins, self._ends = hosts, begins, ends

    def free(self, start: int, until: int) -> list[int]:
        """Return the numbers with a gap from `start` to `until`."""
        around = (self._begins <= start) & (self._ends >= until)
        found: list[int] = self._numbers[self._hosts[around]].tolist()
        return found

    def starts(self, reach: int) -> Steps:
        """Return how many numbers are free for `reach` seconds, by their begin."""
        long = self._ends - self._begins >= reach
        edges = np.sort(np.concatenate([self._begins[long] << 1, self._ends[long] - reach + 1 << 1 | 1]))
        levels = np.concatenate([[0], np.cumsum(1 - 2 * (edges & 1))])
        return Steps((edges >> 1).tolist(), levels.tolist())

    def lasting(self, reach: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return the begins, ascending, and the ends of the gaps of `reach` seconds or more."""
        long = self._ends - self._begins >= reach
        begins, ends = self._begins[long], self._ends[long]
        order = np.argsort(begins)
        return begins[order].tolist(), ends[order].tolist()

    def without(self, left_out: Collection[int]) -> "PackedGaps":
        """Return the gaps of the other numbers."""
        stays = ~np.isin(self._numbers, list(left_out))
        places, kept = np.cumsum(stays) - 1, stays[self._hosts]
        numbers: list[int] = self._numbers[stays].tolist()
        return PackedGaps(numbers, places[self._hosts[kept]], self._begins[kept], self._ends[kept])


def decode(rows: Sequence[Packed], added: Mapping[int, Span]) -> PackedGaps:
    """Return the gaps of each host. Begins of busy periods are rounded down to seconds and ends up.

    `added` has one further busy period for some of the hosts.
    """
    numbers = [number for number, _, _ in rows]
    further = [(index, *added[number]) for index, number in enumerate(numbers) if number in added]
    more = np.array(further, np.int64).reshape(-1, 3).T
    sizes = np.array([len(begins or b"") // 8 for _, begins, _ in rows], np.int64)
    hosts = np.concatenate([np.repeat(np.arange(len(rows), dtype=np.int64), sizes), more[0]])
    begins = np.concatenate([_timestamps(row[1] for row in rows) // _SECOND + _EPOCH, more[1]])
    ends = np.concatenate([-(-_timestamps(row[2] for row in rows) // _SECOND) + _EPOCH, more[2]])
    # So many begins as ends are past in a gap. So it lies between an end and the begin of the same rank, both sorted
    # apart, even where slots of several leases overlap. A begin of 0 and an end of FAR bound each host.
    all_of_them = np.arange(len(rows), dtype=np.int64)
    opened = np.sort(np.concatenate([hosts << _BITS | ends, all_of_them << _BITS]))
    closed = np.sort(np.concatenate([hosts << _BITS | begins, all_of_them << _BITS | FAR]))
    is_gap = opened < closed
    opened, closed = opened[is_gap], closed[is_gap]
    return PackedGaps(numbers, opened >> _BITS, opened & (1 << _BITS) - 1, closed & (1 << _BITS) - 1)


def _timestamps(packed: Iterable[bytes | None]) -> Numbers:
    return np.frombuffer(b"".join(one for one in packed if one), dtype=">i8").astype(np.int64)
