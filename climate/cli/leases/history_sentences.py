"""The history of a lease in sentences: when, by whom, what."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from climate.cli.dates import instant, with_zone
from climate.cli.leases import sharing_options

if TYPE_CHECKING:
    from climate.cli.response_types.leases import Actor, LeaseEntry, LeaseFact, Sharing
    from climate.cli.tables import Look

EVENTS = {
    "start_lease": "the start",
    "before_end_lease": "the reminder before the end",
    "end_lease": "the end",
    "before_end": "the actions before the end",
}
"""Kind of an event -> its name in a sentence; other kinds have their own names."""


def sentences(rows: "Iterable[LeaseEntry]", look: "Look", reader: str = "") -> list[dict[str, object]]:
    """Return a row for each entry of a history: time, author (`you` for the reader's own user id), and a sentence."""
    known: dict[str, str] = {}
    kinds: dict[str, str] = {}
    result: list[dict[str, object]] = []
    for row in rows:
        body = row["body"]
        known |= {str(event["id"]): str(event["kind"]) for event in body.get("events", ())}
        kinds |= {str(one.get("id")): str(one.get("resource_type")) for one in body.get("reservations", ())}
        if (kind := kinds.get(str(body.get("reservation_id")))) is not None:
            row = {**row, "body": {"resource_type": kind, **body}}
        event = known.get(str(body.get("event_id")), "")
        says = SENTENCES.get(row["kind"], _plain)(row, EVENTS.get(event, event or "an event"), look)
        result.append({"at": row["at"], "by": _author(row.get("actor") or {}, reader), "happened": says})
    return result


def _author(actor: "Actor", reader: str) -> str:
    """Return the component or the user that wrote an entry."""
    user = str(actor.get("user_id") or "")
    return "you" if reader and user == reader else user.removeprefix("climate:")


def _when(value: object, look: "Look") -> str:
    """Return a time with its date, because a history is read later."""
    when = instant(value)
    if when is None or look.iso or look.width is None:
        return str(with_zone(value))
    return f"{when.astimezone(None) if not look.utc else when:%Y-%m-%d %H:%M}{' UTC' if look.utc else ''}"


def _period(row: "LeaseEntry", look: "Look") -> str:
    period = row["body"].get("period")
    start, end = (period["start"], period["end"]) if period else (None, None)
    return f"from {_when(start, look)} to {_when(end, look)}"


def _created(row: "LeaseEntry", event: str, look: "Look") -> str:
    body = row["body"]
    kinds = [str(one.get("resource_type")) for one in body.get("reservations", ())]
    return f"created as {body.get('name')!r}, {_period(row, look)}, with {', '.join(kinds) or 'no resources'}"


def _changed(row: "LeaseEntry", event: str, look: "Look") -> str:
    body = row["body"]
    missing = f"; {_count(body['missing'], 'host')} missing" if body.get("missing") else ""
    whose = body.get("resource_type") or "its reservation"
    return f"{whose} has {_promise(body, look)}{missing}{_why(body)}"


def _promise(body: "LeaseFact", look: "Look") -> str:
    """Return the number of hosts, slots, addresses or amounts that a reservation has from then on, and their period."""
    held = (*(body.get("holds") or ()), *(body.get("addresses") or ()))
    periods = [one["during"] for one in held if one.get("during")]
    if not periods:
        return _resources(body)
    start, end = min(period["start"] for period in periods), max(period["end"] for period in periods)
    return f"{_resources(body)} from {_when(start, look)} to {_when(end, look)}"


def _resources(body: "LeaseFact") -> str:
    """Return the number of hosts, slots, addresses or amounts of a reservation."""
    if holds := body.get("holds"):
        hosts = _count(len(holds), "host")
        slots = sum(int(hold.get("slots") or 0) for hold in holds)
        return _count(slots, "slot", f" on {hosts}") if slots else hosts
    if addresses := body.get("addresses"):
        return _count(len(addresses), "floating IP")
    amounts = body.get("amounts")
    return _count(len(amounts), "amount") if amounts else "no hosts"


def _count(number: int, noun: str, rest: str = "") -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}{rest}"


def _requeued(row: "LeaseEntry", event: str, look: "Look") -> str:
    body = row["body"]
    return f"{event} is tried again at {_when(body.get('run_at'), look)}{_why(body)}"


def _why(body: "LeaseFact") -> str:
    return f": {body['reason']}" if body.get("reason") else ""


def _outcome(body: "LeaseFact") -> str:
    return "" if body.get("outcome") in (None, "", "OK") else f" ({body['outcome']})"


def _shared(sharing: "Sharing | None") -> str:
    ids = [one for named in sharing_options.shared_with(sharing).values() for one in named]
    return f"shared with {', '.join(ids)}" if ids else "shared with nobody any more"


def _plain(row: "LeaseEntry", event: str, look: "Look") -> str:
    """Return an entry of another kind by its name, with its reason."""
    return f"{row['kind']}{_why(row['body'])}"


Sentence = Callable[["LeaseEntry", str, "Look"], str]

SENTENCES: Mapping[str, Sentence] = {
    "LeaseCreated": _created,
    "LeaseRenamed": lambda row, event, look: f"renamed to {row['body'].get('name')!r}",
    "SharingChanged": lambda row, event, look: _shared(row["body"].get("sharing")),
    "LeaseRescheduled": lambda row, event, look: f"moved: {_period(row, look)}",
    "ReservationChanged": _changed,
    "HostsSublet": lambda row, event, look: (
        f"hosts promised to sub-lease {row['body'].get('sublease_id')} from {_when(row['body'].get('start'), look)} on"
    ),
    "SubletWarned": lambda row, event, look: "its owner was warned that hosts are taken for a sub-lease",
    "SubletHostsTaken": lambda row, event, look: f"hosts taken for sub-lease {row['body'].get('sublease_id')}",
    "SubletHostsReturned": lambda row, event, look: f"sub-lease {row['body'].get('sublease_id')} is over",
    "SubleaseProlonged": lambda row, event, look: (
        f"its hosts are kept until {_when(row['body'].get('until'), look)}, as its parent is prolonged"
    ),
    "SubleaseReturned": lambda row, event, look: "its hosts were returned to its parent",
    "KeptAmountsReleased": lambda row, event, look: "resources that it kept were released",
    "EventClaimed": lambda row, event, look: f"{event} began",
    "EventShareSettled": lambda row, event, look: (
        f"{event} of {row['body'].get('resource_type')} is done{_outcome(row['body'])}{_why(row['body'])}"
    ),
    "EventSharePutBack": _requeued,
    "EventFinished": lambda row, event, look: f"{event} is done{_outcome(row['body'])}",
    "EventSkipped": lambda row, event, look: f"{event} was left out{_why(row['body'])}",
    "EventPutBack": _requeued,
    "EventClaimTakenBack": lambda row, event, look: f"{event} was stopped before it did anything",
    "EventFailed": lambda row, event, look: f"{event} failed{_why(row['body'])}",
    "EventRequeued": lambda row, event, look: f"{event} is to be tried again",
    "HoldRenewed": lambda row, event, look: "renewed: it is held for longer",
    "HoldConfirmed": lambda row, event, look: "confirmed: it is an ordinary lease now",
    "HoldExpired": lambda row, event, look: "the hold expired without a confirmation",
    "LeaseGranted": lambda row, event, look: "it got the resources for which it has waited",
    "WaitExpired": lambda row, event, look: "the wait was over, and nothing was free",
    "LeasePartHeld": lambda row, event, look: f"{row['body'].get('hosts')} hosts of a child are held",
    "LeasePartConfirmed": lambda row, event, look: "the part in a child is confirmed",
    "LeasePartReleased": lambda row, event, look: "the part in a child is released",
    "PreemptionPlanned": lambda row, event, look: (
        f"a host is needed for an ordinary lease, and is taken at {_when(row['body'].get('take_at'), look)}"
    ),
    "PreemptionWarned": lambda row, event, look: "its owner was warned that hosts are about to be taken",
    "HostPreempted": lambda row, event, look: "a host was taken for an ordinary lease",
    "LeasePreempted": lambda row, event, look: f"ended early{_why(row['body'])}",
    "DeletionRequested": lambda row, event, look: "its deletion was requested",
    "LeaseDeleted": lambda row, event, look: "deleted",
}
"""Kind of an entry -> its sentence."""
