"""Busy periods of many hosts, out of the packed timestamps of one statement.

A hundred thousand periods are decoded, sorted and counted as arrays. Python objects for each of them, made one by one,
would take longer than the statement.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from climate.domain.availability.demands import Steps
from climate.domain.availability.openings import Span

BEGINS = "string_agg(timestamptz_send(lower(during)), ''::bytea)"
ENDS = "string_agg(timestamptz_send(upper(during)), ''::bytea)"
"""SQL of the packed timestamps of one host: the same sequence of periods in both."""

Packed = tuple[int, bytes | None, bytes | None]
"""Number of a host, the begins and the ends of its periods; None without any."""

_SECOND = 1_000_000
"""Microseconds, in which PostgreSQL sends a timestamp."""
_EPOCH = 946_684_800
"""Seconds from 1970 to 2000, from which PostgreSQL counts."""
_BITS = 40
"""Bits of a time in seconds; the index of its host stands above them."""

Numbers = NDArray[np.int64]


def decode(rows: Sequence[Packed], added: Mapping[int, Span]) -> tuple[dict[int, Sequence[Span]], Steps]:
    """Return the sorted, disjoint periods of each host, and how many hosts are free along time.

    Begins are rounded down to seconds and ends up. `added` has one further period for some of the hosts.
    """
    sizes = [len(begins or b"") // 8 for _, begins, _ in rows]
    hosts = np.repeat(np.arange(len(rows), dtype=np.int64), sizes)
    begins = _sorted(hosts, _timestamps(row[1] for row in rows) // _SECOND + _EPOCH)
    ends = _sorted(hosts, -(-_timestamps(row[2] for row in rows) // _SECOND) + _EPOCH)
    overlapping = set(hosts[1:][(hosts[1:] == hosts[:-1]) & (ends[:-1] > begins[1:])].tolist())
    spans, busy, first = list(zip(begins.tolist(), ends.tolist(), strict=True)), dict[int, Sequence[Span]](), 0
    changed = list[int]()
    for place, ((number, _, _), size) in enumerate(zip(rows, sizes, strict=True)):
        busy[number] = spans[first : first + size]
        if place in overlapping or number in added:
            busy[number] = merged([*busy[number], *([added[number]] if number in added else [])])
            changed.append(place)
        first += size
    return busy, _steps(busy, rows, changed, (hosts, begins, ends))


def merged(periods: Iterable[Span]) -> Sequence[Span]:
    """Return sorted periods without overlaps: slots of several leases may lie on one host."""
    known = sorted(periods)
    if all(later[0] >= span[1] for span, later in pairwise(known)):
        return known
    result: list[Span] = []
    last = None
    for span in known:
        if last is not None and span[0] <= last:
            if span[1] > last:
                result[-1], last = (result[-1][0], span[1]), span[1]
        else:
            result.append(span)
            last = span[1]
    return result


def _timestamps(packed: Iterable[bytes | None]) -> Numbers:
    return np.frombuffer(b"".join(one for one in packed if one), dtype=">i8").astype(np.int64)


def _sorted(hosts: Numbers, seconds: Numbers) -> Numbers:
    """Return the times, sorted within each host. To sort begins and ends apart keeps disjoint periods together."""
    return np.sort(hosts << _BITS | seconds) & ((1 << _BITS) - 1)


def _steps(
    busy: Mapping[int, Sequence[Span]],
    rows: Sequence[Packed],
    changed: Sequence[int],
    times: tuple[Numbers, Numbers, Numbers],
) -> Steps:
    """Return how many hosts are free along time; the periods of `changed` hosts are those in `busy`."""
    hosts, begins, ends = times
    same = ~np.isin(hosts, changed)
    others = np.array(list(chain.from_iterable(busy[rows[place][0]] for place in changed)), np.int64).reshape(-1, 2)
    begin_edges = np.concatenate([begins[same], others[:, 0]]) << 1 | 1
    edges = np.sort(np.concatenate([begin_edges, np.concatenate([ends[same], others[:, 1]]) << 1]))
    levels = np.concatenate([[0], np.cumsum(1 - 2 * (edges & 1))]) + len(rows)
    return Steps((edges >> 1).tolist(), levels.tolist())
