"""Owners of the servers on each node, for rules that place servers by their neighbours."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Owner = tuple[str, str]
"""(project id, user id)"""


@dataclass(frozen=True, slots=True)
class Occupants:
    """The servers on each node by their owners, as one request sees them."""

    nodes: Mapping[int, Mapping[Owner, int]] = field(default_factory=dict)
    """Node id -> owner -> number of servers."""

    def count(
        self, node_ids: NDArray[np.int64], *, project_id: str | None = None, user_id: str | None = None
    ) -> NDArray[np.float64]:
        """Return the number of servers on each of these nodes, of one project or one user if given."""

        def fits(owner: Owner) -> bool:
            return project_id in (None, owner[0]) and user_id in (None, owner[1])

        def on(node_id: int) -> int:
            return sum(servers for owner, servers in self.nodes.get(node_id, {}).items() if fits(owner))

        result = np.zeros(len(node_ids))
        if len(node_ids) == 1:
            result[0] = on(int(node_ids[0]))
            return result
        known = np.fromiter(self.nodes, np.int64, len(self.nodes))
        there = np.flatnonzero(np.isin(node_ids, known))
        result[there] = [on(node_id) for node_id in node_ids[there].tolist()]
        return result

    def joined_by(self, node_id: int, owner: Owner) -> "Occupants":
        """Return a copy with one more server of this owner on that node."""
        there: Mapping[Owner, int] = self.nodes.get(node_id, {})
        return Occupants({**self.nodes, node_id: {**there, owner: there.get(owner, 0) + 1}})

    def fewer_than(self, later: "Occupants") -> list[int]:
        """Return the ids of nodes on which some owner has more servers in `later`."""
        return [
            node_id
            for node_id, owners in later.nodes.items()
            if any(servers > self.nodes.get(node_id, {}).get(owner, 0) for owner, servers in owners.items())
        ]
