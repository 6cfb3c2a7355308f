"""The heartbeat of a worker while it acts: keeps its claims alive, and notices when one is lost."""

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
class Pulse:
    """Beats in a thread of its own, with a connection of its own, at a third of the time that a claim lives.

    Measures with the monotonic clock: without a beat for two thirds of that
    time, the worker takes its claims for lost before anyone else does.
    """

    climate: Climate
    claims: Sequence[Message]
    """Of all events that the worker is at."""
    _stop: Event = field(default_factory=Event)
    _refused: set[UUID] = field(default_factory=set)
    _last: float = field(default_factory=time.monotonic)
    _thread: Thread | None = None

    @property
    def _life(self) -> float:
        return self.climate.settings.claim_seconds

    def lost(self, event_id: UUID) -> bool:
        """Return whether an event is another worker's by now, or may be."""
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
            mine = [one for one in self.claims if one.event_id not in self._refused]
            if not mine:
                return
            try:
                with self.climate.engine.begin() as conn:
                    alive = event_claims.keep_alive(conn, mine, self.climate.now(conn), life)
            except SQLAlchemyError as error:
                log.warning("no heartbeat", event_id=str(mine[0].event_id), error=type(error).__name__)
                continue
            self._refused |= {one.event_id for one in mine} - alive
            self._last = time.monotonic()
