"""The heartbeat of a worker while it acts: keeps its claim alive, and notices when it is lost."""

import time
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

log = structlog.get_logger(__name__)


@dataclass
class Pulse:
    """Beats in a thread of its own, with a connection of its own, at a third of the time that a claim lives.

    Measures with the monotonic clock: without a beat for two thirds of that
    time, the worker takes its claim for lost before anyone else does.
    """

    climate: Climate
    event_id: UUID
    token: int
    _stop: Event = field(default_factory=Event)
    _refused: bool = False
    _last: float = field(default_factory=time.monotonic)
    _thread: Thread | None = None

    @property
    def _life(self) -> float:
        return self.climate.settings.claim_seconds

    def lost(self) -> bool:
        return self._refused or time.monotonic() - self._last > self._life * 2 / 3

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._beat, name=f"pulse-{self.event_id}", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()

    def _beat(self) -> None:
        while not self._stop.wait(self._life / 3):
            try:
                with self.climate.engine.begin() as conn:
                    now = self.climate.now(conn)
                    alive = event_claims.keep_alive(conn, self.event_id, self.token, now, timedelta(seconds=self._life))
            except SQLAlchemyError as error:
                log.warning("no heartbeat", event_id=str(self.event_id), error=type(error).__name__)
                continue
            if not alive:
                self._refused = True
                return
            self._last = time.monotonic()
