"""Notifications to administrators at the start and the end of each node selection."""

from collections.abc import Mapping
from typing import Any

import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from climate.compute.scheduler.decisions.notifications import END, Tell
from climate.domain.notifications import Notice
from climate.store.engine import database_time
from climate.store.notices import notifications

log = structlog.get_logger(__name__)


def notifier(engine: Engine) -> Tell:
    """Return a function that writes a notification over `engine` in a transaction of its own.

    The transaction of the request may be rolled back when no node is found, and its connection is busy. `engine` must
    have connections that no request holds. A notification that cannot be written is logged, and the selection
    continues.
    """

    def notify(kind: str, body: Mapping[str, object]) -> None:
        try:
            with engine.begin() as conn:
                notifications.add(conn, database_time(conn), [Notice(kind, _message(kind, body), body=body)])
        except (SQLAlchemyError, TypeError, ValueError) as reason:
            log.warning("scheduler notification not written", kind=kind, reason=str(reason))

    return notify


def _message(kind: str, body: Mapping[str, Any]) -> str:
    spec = body["request_spec"]
    asked = f"{spec['num_instances']} servers of project {spec['project_id']}, reservation {spec['reservation_id']}"
    if kind != END:
        return f"Nodes are being selected for {asked}"
    return f"No nodes for {asked}: {body['error']}" if "error" in body else f"Nodes are selected for {asked}"
