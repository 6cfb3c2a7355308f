"""A migration: a server on its way from one node to another, as a row that outlives it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

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
"""Statuses of a live migration that has not ended."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One move of a server.  Sizes as in `Room`, times UTC."""

    id: int
    uuid: str
    server_id: str
    project_id: str
    """Of whoever asked for it, as `user_id` is."""
    user_id: str
    type: str
    status: str
    source_host: str
    source_node: str
    dest_host: str
    dest_node: str
    dest_ip: str
    source_node_id: int | None
    """None: that node is gone."""
    dest_node_id: int | None
    old_flavor: str
    new_flavor: str
    held_node_id: int | None
    """The node on which `held` is taken besides: the one of the two that the server is not on; None: none is."""
    held: Room
    error: str | None
    """Why it failed: for administrators."""
    progress: Mapping[str, Any]
    """Of a live migration: memory_total_bytes, memory_processed_bytes, memory_remaining_bytes, disk_…"""
    created_at: datetime
    updated_at: datetime

    @property
    def file(self) -> str:
        """The name, in the folder of images, of the disk on its way: no image can be called so."""
        return f"migration-{self.uuid}"

    def beyond(self, node_id: int | None) -> tuple[int | None, str]:
        """The other node of the two, and its service host."""
        if node_id == self.source_node_id:
            return self.dest_node_id, self.dest_host
        return self.source_node_id, self.source_host

    def is_at_destination(self, node_id: int | None) -> bool:
        """Whether a server on this node has come to the destination."""
        return node_id == self.dest_node_id
