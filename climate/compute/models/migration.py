"""A migration of a server between two nodes, as a row that outlives it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from climate.compute.models.server import Room

COLD, RESIZED, EVACUATION, LIVE = "migration", "resize", "evacuation", "live-migration"
"""Types, as Nova names them."""

ACCEPTED, PRE_MIGRATING, MIGRATING, POST_MIGRATING = "accepted", "pre-migrating", "migrating", "post-migrating"
FINISHED, CONFIRMING, CONFIRMED, REVERTING, REVERTED = "finished", "confirming", "confirmed", "reverting", "reverted"
DONE, COMPLETED, FAILED, ERROR = "done", "completed", "failed", "error"
QUEUED, PREPARING, RUNNING, CANCELLED = "queued", "preparing", "running", "cancelled"
"""Statuses, as Nova names them; the last four are of live migrations alone.

A cold migration goes from PRE_MIGRATING over MIGRATING (the source works) and POST_MIGRATING (the destination works) to
FINISHED.  Then it is CONFIRMED, after CONFIRMING while the source has something to clear away, or REVERTED after
REVERTING.  An evacuation is ACCEPTED, PRE_MIGRATING, DONE, and COMPLETED once its source has come back and is clear.
"""

UNDER_WAY = (ACCEPTED, QUEUED, PREPARING, PRE_MIGRATING, RUNNING, POST_MIGRATING)
"""Statuses of a live migration that is in progress."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration of a server. Sizes as in `Room`, times UTC."""

    id: int
    uuid: str
    server_id: str
    project_id: str
    """The project of the requester, as `user_id` is the user."""
    user_id: str
    type: str
    status: str
    source_host: str
    source_node: str
    dest_host: str
    dest_node: str
    dest_ip: str
    source_node_id: int | None
    """None: that node was deleted."""
    dest_node_id: int | None
    old_flavor: str
    new_flavor: str
    held_node_id: int | None
    """The node on which `held` is claimed too: the one of the two that the server is not on; None: none is."""
    held: Room
    error: str | None
    """Reason of the failure, for administrators."""
    progress: Mapping[str, object]
    """Of a live migration: memory_total_bytes, memory_processed_bytes, memory_remaining_bytes, disk_…"""
    created_at: datetime
    updated_at: datetime

    @property
    def file(self) -> str:
        """Return the name, in the folder of images, of the disk in transfer, which no image can have."""
        return f"migration-{self.uuid}"

    def beyond(self, node_id: int | None) -> tuple[int | None, str]:
        """Return the other node of the two, and its service host."""
        if node_id == self.source_node_id:
            return self.dest_node_id, self.dest_host
        return self.source_node_id, self.source_host

    def is_at_destination(self, node_id: int | None) -> bool:
        """Return whether a server on this node has reached the destination."""
        return node_id == self.dest_node_id
