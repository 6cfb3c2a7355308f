"""Assignment of whole hosts to demands at minimum cost, as a flow by augmenting paths; a demand has two bounds.

A path gives one more host to a demand. It takes a host from a second demand, which takes one from a third, until one
takes a free host. No demand loses by it. The paths run over demands only, and there are few of them. The cheapest host
that one can take from another is the top of a heap. Each path is the cheapest one, so the cost stays the least that is
possible for these numbers of hosts.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush


@dataclass(frozen=True, slots=True)
class Whole:
    """Demand for `least` to `most` whole hosts; also for addresses."""

    candidates: Sequence[int]
    """Numbers of the hosts that it can have, best first."""
    least: int
    most: int
    must: frozenset[int] = frozenset()
    """Candidates that it has and cannot give up."""
    drawbacks: Mapping[int, int] = field(default_factory=dict)
    """Level of the drawback of a candidate, such as recycling; 0 if it is not named.

    Hosts of a high level are chosen as seldom as possible, whatever the order of the candidates.
    """


class Flow:
    """The hosts that demands hold, and the cheapest ways to one more."""

    def __init__(self, demands: Sequence[Whole], without: Collection[int] = ()) -> None:
        """Give each demand the hosts that it must have; `without` are hosts for none of them."""
        self._demands = demands
        self._costs = _costs(demands, without)
        self._holder: dict[int, int] = {}
        self._free = [sorted(((cost, host) for host, cost in one.items()), reverse=True) for one in self._costs]
        self._moves: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        self.held = [0] * len(demands)
        """Number of hosts of each demand."""
        for index, costs in enumerate(self._costs):
            for host in sorted(demands[index].must & costs.keys()):
                self._holder[host] = index
                self.held[index] += 1
        self._fixed = frozenset(self._holder)

    def fill_least(self) -> frozenset[int]:
        """Give each demand its least number; return the demands that have too few hosts together, or nothing."""
        for index, demand in enumerate(self._demands):
            if not demand.must <= self._costs[index].keys():
                return frozenset((index,))
            while self.held[index] < demand.least:
                reached = self._augment(index)
                if reached:
                    return reached
        return frozenset()

    def fill_most(self) -> None:
        """Give each demand up to its greatest number: in turn one more to each, so that they share what is left."""
        open_ = [place for place, demand in enumerate(self._demands) if self.held[place] < demand.most]
        while open_:
            open_ = [
                place for place in open_ if not self._augment(place) and self.held[place] < self._demands[place].most
            ]

    def chosen(self) -> list[list[int]]:
        """Return the hosts of each demand, ascending."""
        result: list[list[int]] = [[] for _ in self._demands]
        for host, place in sorted(self._holder.items()):
            result[place].append(host)
        return result

    def _augment(self, place: int) -> frozenset[int]:
        """Give a demand one more host by the cheapest path; return the demands in its reach if there is none."""
        paid, before = self._reach(place)
        ends = [(cost + top[0], at) for at, cost in paid.items() if (top := self._first_free(at))]
        if not ends:
            return frozenset(paid)
        at, vacant = min(ends)[1], self._free[min(ends)[1]].pop()[1]
        while at != place:
            taker = before[at]
            host = self._moves[taker, at][0][1]
            self._assign(vacant, at)
            at, vacant = taker, host
        self._assign(vacant, place)
        self.held[place] += 1
        return frozenset()

    def _reach(self, place: int) -> tuple[dict[int, int], dict[int, int]]:
        """Return the cost of the cheapest way to each demand in reach, and the demand before it.

        A way may become cheaper on its way (Bellman and Ford), but no circle does, since the cost is the least.
        """
        paid, before, changed = {place: 0}, dict[int, int](), [place]
        while changed:
            taker = changed.pop(0)
            for other in range(len(self._demands)):
                top = self._first_move(taker, other) if other != taker else None
                if top and paid[taker] + top[0] < paid.get(other, paid[taker] + top[0] + 1):
                    paid[other], before[other] = paid[taker] + top[0], taker
                    changed.append(other)
        return paid, before

    def _first_free(self, place: int) -> tuple[int, int] | None:
        known = self._free[place]
        while known and known[-1][1] in self._holder:
            known.pop()
        return known[-1] if known else None

    def _first_move(self, taker: int, giver: int) -> tuple[int, int] | None:
        known = self._moves.get((taker, giver))
        while known and self._holder[known[0][1]] != giver:
            heappop(known)
        return known[0] if known else None

    def _assign(self, host: int, place: int) -> None:
        self._holder[host] = place
        for taker, costs in enumerate(self._costs):
            if taker != place and host in costs:
                heappush(self._moves[taker, place], (costs[host] - self._costs[place][host], host))


def _costs(demands: Sequence[Whole], without: Collection[int]) -> list[dict[int, int]]:
    """Return the cost of each candidate: a level of drawbacks outweighs all hosts of the levels below."""
    hosts = 1 + sum(demand.most for demand in demands)
    places = 1 + hosts * max((len(demand.candidates) for demand in demands), default=0)
    fixed = {host: index for index, demand in enumerate(demands) for host in demand.must}
    return [
        {
            host: rank + places * (hosts ** demand.drawbacks.get(host, 0))
            for rank, host in enumerate(demand.candidates)
            if host not in without and fixed.get(host, index) == index
        }
        for index, demand in enumerate(demands)
    ]
