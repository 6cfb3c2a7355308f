"""climate find: times at which a lease fits, with holds and leases of them."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypedDict, Unpack
from uuid import uuid4

import click

from climate.cli import lookup
from climate.cli.connection.session import Session, current
from climate.cli.dates import Moment, MomentType, SpanType, instant, spoken, wire
from climate.cli.errors import CONFLICT, Failure
from climate.cli.leases.lease import show_lease
from climate.cli.leases.request_body import CapacityOptions, capacity, new_reservations
from climate.cli.options import listed

if TYPE_CHECKING:
    from climate.cli.response_types.availability import Availability, Hold, Offer, Point
    from climate.cli.response_types.leases import Lease

COLUMNS = ("offer", "start_date", "end_date", "length", "gets", "free", "expires_at")
ALTERNATIVES = ("offer", "instead", "start_date", "end_date", "length", "gets")
MODES = ("first", "most", "longest", "at", "cheapest")
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WIDTH = 60
"""Columns of the drawn line."""

BARS = " ▁▂▃▄▅▆▇█"
WINDOW = re.compile(r"(?:(?P<days>[a-z,-]+)\s+)?(?P<begin>\d\d:\d\d)-(?P<end>\d\d:\d\d)(?:\s+(?P<zone>\S+))?", re.I)
WINDOW_FORMS = "'Mon-Fri 08:00-18:00 Europe/Berlin', 'Sat,Sun 00:00-24:00' or '20:00-06:00'"


class WindowType(click.ParamType[dict[str, object]]):
    """A click parameter for daily and weekly windows."""

    name = "window"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, object]:
        if isinstance(value, dict):
            return value
        found = WINDOW.fullmatch(str(value).strip())
        days = _days(found["days"] or "") if found else None
        if found is None or days is None:
            self.fail(f"{value!r} is not a window; write {WINDOW_FORMS}", param, ctx)
        return {"days": days, "begin": found["begin"], "end": found["end"], "zone": found["zone"] or "UTC"}


def _days(text: str) -> list[str] | None:
    """Return the days of `Mon-Fri` or `Sat,Sun`; all for no text, None for an unknown day."""
    chosen: list[str] = []
    for part in text.lower().split(",") if text else ["mon-sun"]:
        first, _, last = part.partition("-")
        if first not in DAYS or (last or first) not in DAYS:
            return None
        begin, end = DAYS.index(first), DAYS.index(last or first)
        chosen += (DAYS * 2)[begin : end + 1 + 7 * (end < begin)]
    return sorted(set(chosen), key=DAYS.index)


class FindOptions(CapacityOptions):
    """Options of the command."""

    length: timedelta
    within: timedelta
    earliest: Moment
    between: tuple[dict[str, object], ...]
    mode: str
    step: timedelta
    offers: int
    hold: int | None
    take: int | None
    name: str
    wait_list: bool


class Question(TypedDict):
    """A search, as it is sent."""

    reservations: list[dict[str, object]]
    duration: int
    earliest: str
    latest: str | None
    between: list[dict[str, object]]
    step: int
    mode: str
    offers: int
    points: int


@click.command("find")
@click.option("--for", "length", type=SpanType(), required=True, help="Length of the lease: 90s, 6h, 1d12h.")
@click.option("--within", type=SpanType(), default="1w", show_default=True, help="Time in which the lease must lie.")
@click.option("--from", "earliest", type=MomentType(), default="now", show_default=True, help="Earliest start.")
@click.option("--between", type=WindowType(), multiple=True, help=f"Window of the lease: {WINDOW_FORMS}; repeatable.")
@click.option("--mode", type=click.Choice(MODES), default="first", show_default=True, help="Which times are best.")
@click.option("--step", type=SpanType(), default="1m", show_default=True, help="Granularity of starts, like 1h.")
@click.option("--offers", type=click.IntRange(1, 20), default=5, show_default=True, help="Number of offers.")
@click.option("--hold", type=click.IntRange(1, 20), metavar="OFFER", help="Hold this offer, by its number.")
@click.option("--take", type=click.IntRange(1, 20), metavar="OFFER", help="Make the lease of this offer.")
@click.option("--name", default="found", show_default=True, help="Name of the hold or lease.")
@click.option("--wait-list", is_flag=True, help="If nothing fits, make a lease that stands in line for it.")
@capacity(new=True)
@listed
def command(**given: Unpack[FindOptions]) -> None:
    """Find times at which a lease fits; hold one, or make the lease of it.

    The best times are first. The line shows how many are free along the time that was searched.
    """
    session = current()
    _refuse_both(given)
    asked = _question(session, given)
    answer: Availability = session.client.json("reservation", "POST", "/availability", json=asked)
    offers = answer["offers"] or [one["offer"] for one in answer["alternatives"]]
    if given["wait_list"] and not answer["offers"]:
        _join_waiting_list(session, asked, given)
        return
    chosen = given["take"] or given["hold"]
    if chosen and (chosen > len(offers) or not answer["offers"]):
        _show(session, answer)
        raise Failure(f"there is no offer {chosen}", CONFLICT, _reason(answer))
    if chosen:
        _take(session, offers[chosen - 1], given)
        return
    _show(session, answer)
    if not answer["offers"]:
        raise Failure("nothing fits", CONFLICT, _reason(answer))


def _refuse_both(options: FindOptions) -> None:
    """Refuse options that exclude each other."""
    if options["hold"] and options["take"]:
        raise click.UsageError("--hold and --take exclude each other")
    if options["wait_list"] and (options["hold"] or options["between"]):
        raise click.UsageError("--wait-list excludes --hold and --between")


def _question(session: Session, options: FindOptions) -> Question:
    if options["network"]:
        options = {**options, "network": lookup.network_id(session.client, options["network"])}
    now = session.client.now().replace(microsecond=0)
    earliest = options["earliest"].when(now)
    return {
        "reservations": new_reservations(options),
        "duration": int(options["length"].total_seconds()),
        "earliest": "now" if options["earliest"].is_now else wire(earliest),
        "latest": None if options["mode"] == "at" else wire(earliest + options["within"]),
        "between": list(options["between"]),
        "step": max(1, int(options["step"].total_seconds())),
        "mode": options["mode"],
        "offers": max(options["offers"], options["hold"] or 0, options["take"] or 0),
        "points": WIDTH * 4 if session.form == "table" else 100,
    }


def _take(session: Session, offer: "Offer", options: FindOptions) -> None:
    name = options["name"]
    asked = {"offer": offer["id"], "name": name}
    hold: Hold = session.client.json("reservation", "POST", "/holds", json=asked)["hold"]
    if options["hold"]:
        session.show(hold)
        session.say(f"held until {hold['expires_at']} UTC: `climate lease confirm {hold['id']}` makes it a lease")
        return
    headers = {"Idempotency-Key": str(uuid4())}
    body = {"name": name, "hold": hold["id"]}
    made: Lease = session.client.json("reservation", "POST", "/leases", json=body, headers=headers)["lease"]
    show_lease(session, made)


def _join_waiting_list(session: Session, question: Question, options: FindOptions) -> None:
    """Make the lease of the earliest time, which waits up to the latest start and moves until then."""
    now = session.client.now().replace(microsecond=0)
    start = options["earliest"].when(now)
    latest = start + max(options["within"] - options["length"], timedelta(minutes=1))
    body = {
        "name": options["name"],
        "start_date": question["earliest"],
        "end_date": wire(start + options["length"]),
        "reservations": question["reservations"],
        "wait": {"until": wire(latest)},
    }
    headers = {"Idempotency-Key": str(uuid4())}
    made: Lease = session.client.json("reservation", "POST", "/leases", json=body, headers=headers)["lease"]
    show_lease(session, made)


def _show(session: Session, answer: "Availability") -> None:
    if session.form != "table" and session.form in ("json", "yaml"):
        session.show(answer)
        return
    rows = [_row(index, offer) for index, offer in enumerate(answer["offers"], 1)]
    others = [{**_row(n, one["offer"]), "instead": one["message"]} for n, one in enumerate(answer["alternatives"], 1)]
    if rows:
        session.show_all(rows, COLUMNS)
    elif others:
        session.show_all(others, ALTERNATIVES)
    if session.form == "table":
        for line in _lines(session, answer):
            click.echo(line)


def _row(place: int, offer: "Offer") -> dict[str, object]:
    counts = [one for one in offer["reservations"] if one["count"] is not None]
    length = _instant(offer["end_date"]) - _instant(offer["start_date"])
    return {
        "offer": place,
        "start_date": offer["start_date"],
        "end_date": offer["end_date"],
        "length": _spelled(int(length.total_seconds())),
        "gets": ", ".join(f"{count['count']}" for count in counts),
        "free": ", ".join(f"{count['free']}" for count in counts),
        "expires_at": offer["expires_at"],
    }


def _spelled(seconds: int) -> str:
    parts = ((seconds // 86400, "d"), (seconds % 86400 // 3600, "h"), (seconds % 3600 // 60, "m"), (seconds % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def _lines(session: Session, answer: "Availability") -> list[str]:
    """Return the free counts as lines of at most 80 columns, each with its range."""
    drawn = []
    for points in answer["free"]:
        if points and len(points) > 1:
            counts = _sampled(points)
            low, high = min(counts), max(counts)
            drawn.append(f"free {_bars(counts, max(high, 1))} {low}..{high}"[:80])
            begin, end = (_time(session, points[place]["time"]) for place in (0, -1))
            drawn.append(f"     {begin}{end:>{max(1, WIDTH - len(begin))}}"[:80])
    return drawn


def _sampled(points: "Sequence[Point]") -> list[int]:
    """Return the least count in each of WIDTH equal parts of the time between the first and the last point."""
    times = [_instant(point["time"]).timestamp() for point in points]
    begin, part = times[0], max(1.0, (times[-1] - times[0]) / WIDTH)
    result = []
    for column in range(WIDTH):
        low, high = begin + column * part, begin + (column + 1) * part
        inside = [point["free"] for point, at in zip(points, times, strict=True) if low < at < high]
        before = [point["free"] for point, at in zip(points, times, strict=True) if at <= low]
        result.append(min([*inside, before[-1]]))
    return result


def _bars(counts: Sequence[int], high: int) -> str:
    return "".join(BARS[-(-count * (len(BARS) - 1) // high)] for count in counts)


def _time(session: Session, text: str) -> str:
    when = instant(text)
    now = session.table_style.now
    return text[:16] if when is None or now is None or session.iso else spoken(when, now, session.utc)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _reason(answer: "Availability") -> str:
    binding = answer["binding"]
    return f"{binding['name']}: {binding['message']}" if binding else "search again with fewer conditions"
