"""Heartbeat of a worker, which renews its claims and detects lost ones."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event, Thread
from types import TracebackType
from typing import Self
from uuid import UUID

import structlog
from sqlalchemy.exc import SQLAlchemyError

from climate.context import Climate
from climate.store.leases import event_claims
from climate.store.leases.event_claims import Message

log = structlog.get_logger(__name__)


@dataclass
class ClaimHeartbeat:
    """Thread that renews claims at a third of their lifetime, over its own connection.

    It measures with the monotonic clock. Without a renewal for two thirds of the lifetime, the worker counts its
    claims as lost, before any other process does.
    """

    climate: Climate
    claims: Sequence[Message]
    """Claims of all events that the worker runs."""
    _stop: Event = field(default_factory=Event)
    _refused: set[UUID] = field(default_factory=set)
    _last: float = field(default_factory=time.monotonic)
    _thread: Thread | None = None

    @property
    def _life(self) -> float:
        return self.climate.settings.claim_seconds

    def lost(self, event_id: UUID) -> bool:
        """Return whether another worker has claimed the event, or may have."""
        return event_id in self._refused or time.monotonic() - self._last > self._life * 2 / 3

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._beat, name=f"pulse-{self.claims[0].event_id}", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()

    def _beat(self) -> None:
        life = timedelta(seconds=self._life)
        while not self._stop.wait(self._life / 3):
            mine = [claim for claim in self.claims if claim.event_id not in self._refused]
            if not mine:
                return
            try:
                with self.climate.engine.begin() as conn:
                    alive = event_claims.renew(conn, mine, self.climate.now(conn), life)
            except SQLAlchemyError as error:
                log.warning("no heartbeat", event_id=str(mine[0].event_id), error=type(error).__name__)
                continue
            self._refused |= {one.event_id for one in mine} - alive
            self._last = time.monotonic()
