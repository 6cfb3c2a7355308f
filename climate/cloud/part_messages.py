"""Actions on parts of leases as JSON: arguments and results of messages between cells."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TypedDict, cast
from uuid import UUID

from climate.cloud import CloudError
from climate.cloud.children import (
    Action,
    Asker,
    Confirm,
    Hold,
    Look,
    Offer,
    Outcome,
    PartAnswer,
    PartLease,
    PartOrder,
    Prolong,
    Release,
    Verdict,
)

METHOD = "lease_part"
"""Name of the cell method that carries out an action."""

LATER = "later"
"""Verdict of an action that the cell could not carry out now."""

LONGEST = 255
"""Maximum length of names, ids and keys."""

ROLES = ("admin", "member")


class LeaseValue(TypedDict):
    """A lease in the value of an answer."""

    id: str
    reservation_id: str | None
    hosts: int | None
    end: str | None
    is_over: bool


def written(asker: Asker, action: Action) -> dict[str, object]:
    """Return the arguments of the message for an action."""
    said: dict[str, object] = {"project_id": asker.project_id, "role": asker.role, "action": type(action).__name__}
    match action:
        case Offer(order):
            return {**said, "order": _written_order(order)}
        case Hold(order, key, seconds, until):
            hold = {"key": key, "seconds": seconds, "until": until.isoformat()}
            return {**said, "order": _written_order(order), **hold}
        case Confirm(lease_id, key):
            return {**said, "lease_id": str(lease_id), "key": key}
        case Look(lease_id, number):
            return {**said, "lease_id": str(lease_id), "number": number}
        case Prolong(lease_id, end, number, dry_run):
            return {
                **said,
                "lease_id": str(lease_id),
                "end": end.isoformat(),
                "number": number,
                "dry_run": dry_run,
            }
        case Release(lease_id):
            return {**said, "lease_id": str(lease_id)}


def read(said: Mapping[str, object]) -> tuple[Asker, Action]:
    """Return the action that a message requests. Raise ValueError that names the unusable argument."""
    role = _text(said, "role")
    if role not in ROLES:
        raise ValueError(f"role must be one of {', '.join(ROLES)}")
    kind = said.get("action")
    if not isinstance(kind, str) or kind not in _READERS:
        raise ValueError(f"action must be one of {', '.join(_READERS)}")
    return Asker(_text(said, "project_id"), role), _READERS[kind](said)


def written_answer(answer: PartAnswer) -> dict[str, object]:
    """Return the message value of an answer."""
    lease = answer.lease
    shown = lease and {
        "id": str(lease.id),
        "reservation_id": str(lease.reservation_id) if lease.reservation_id else None,
        "hosts": lease.hosts,
        "end": lease.end.isoformat() if lease.end else None,
        "is_over": lease.is_over,
    }
    return {"verdict": str(answer.verdict), "reason": answer.reason, "lease": shown}


def later(reason: str) -> dict[str, object]:
    """Return the value for an action that the cell could not carry out now."""
    return {"verdict": LATER, "reason": reason, "lease": None}


def read_answer(value: object) -> Outcome:
    """Return the answer in the value of a message, or a CloudError if it is unreadable."""
    if not isinstance(value, dict):
        return CloudError("the cell gave an unreadable answer")
    reason = str(value.get("reason") or "")[:LONGEST]
    if value.get("verdict") == LATER:
        return CloudError(f"the cell cannot carry out the action now ({reason})")
    try:
        shown = value.get("lease")
        return PartAnswer(
            Verdict(str(value.get("verdict"))), None if shown is None else _read_lease(cast(LeaseValue, shown)), reason
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return CloudError("the cell gave an unreadable answer")


def _read_lease(shown: LeaseValue) -> PartLease:
    reservation_id, hosts, end = shown["reservation_id"], shown["hosts"], shown["end"]
    return PartLease(
        id=UUID(shown["id"]),
        reservation_id=None if reservation_id is None else UUID(reservation_id),
        hosts=None if hosts is None else int(hosts),
        end=None if end is None else _moment(end),
        is_over=bool(shown["is_over"]),
    )


def _written_order(order: PartOrder) -> dict[str, object]:
    start = None if order.start is None else order.start.isoformat()
    return {"name": order.name, "start": start, "end": order.end.isoformat(), "spec": dict(order.spec)}


def _offer(said: Mapping[str, object]) -> Offer:
    return Offer(_order(said))


def _hold(said: Mapping[str, object]) -> Hold:
    return Hold(_order(said), _text(said, "key"), _number(said, "seconds"), _date(said, "until"))


def _confirm(said: Mapping[str, object]) -> Confirm:
    return Confirm(_id(said), _text(said, "key"))


def _look(said: Mapping[str, object]) -> Look:
    return Look(_id(said), _number(said, "number"))


def _prolong(said: Mapping[str, object]) -> Prolong:
    dry_run = said.get("dry_run")
    if not isinstance(dry_run, bool):
        raise ValueError("dry_run must be true or false")
    return Prolong(_id(said), _date(said, "end"), _number(said, "number"), dry_run)


def _release(said: Mapping[str, object]) -> Release:
    return Release(_id(said))


_READERS: Mapping[str, Callable[[Mapping[str, object]], Action]] = {
    "Offer": _offer,
    "Hold": _hold,
    "Confirm": _confirm,
    "Look": _look,
    "Prolong": _prolong,
    "Release": _release,
}


def _order(said: Mapping[str, object]) -> PartOrder:
    given = said.get("order")
    if not isinstance(given, dict) or not isinstance(given.get("spec"), dict):
        raise ValueError("order must be an object with a spec")
    start = None if given.get("start") is None else _date(given, "start")
    return PartOrder(_text(given, "name"), start, _date(given, "end"), given["spec"])


def _text(said: Mapping[str, object], name: str) -> str:
    value = said.get(name)
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST or "\0" in value:
        raise ValueError(f"{name} must be a text of 1 to {LONGEST} characters")
    return value


def _number(said: Mapping[str, object], name: str) -> int:
    value = said.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**31:
        raise ValueError(f"{name} must be a positive number")
    return value


def _id(said: Mapping[str, object]) -> UUID:
    try:
        return UUID(str(said.get("lease_id")))
    except ValueError:
        raise ValueError("lease_id must be a UUID") from None


def _date(said: Mapping[str, object], name: str) -> datetime:
    try:
        return _moment(str(said.get(name)))
    except ValueError:
        raise ValueError(f"{name} must be a time in the form of ISO 8601") from None


def _moment(text: str) -> datetime:
    result = datetime.fromisoformat(text)
    return result if result.tzinfo is not None else result.replace(tzinfo=UTC)
