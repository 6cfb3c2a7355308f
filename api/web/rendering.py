"""Names that templates know: URLs of static files, times, the caller, and the theme."""

from collections.abc import Mapping
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from flask import Flask, g, request
from jinja2 import StrictUndefined
from markupsafe import Markup

from api.web import assets, preferences, sessions

PLACES = (
    ("Home", "/ui/", "reader"),
    ("Leases", "/ui/leases", "reader"),
    ("New lease", "/ui/find", "member"),
    ("Calendar", "/ui/calendar", "reader"),
    ("Servers", "/ui/servers", "reader"),
    ("Usage", "/ui/usage", "reader"),
    ("Notices", "/ui/notices", "reader"),
    ("Hosts", "/ui/hosts", "admin"),
    ("Administration", "/ui/failed-events", "admin"),
)
"""Entries of the navigation: words, path, and the role from which on they are shown."""


def install(app: Flask) -> None:
    """Add the filters and the context of templates; a template that names an unknown variable fails."""
    app.jinja_env.undefined = StrictUndefined
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.filters.update(time=time, iso=iso, instant=datetime.isoformat, left=left, value=value)
    app.jinja_env.globals.update(asset=assets.url, csrf_token=sessions.csrf_token)
    app.context_processor(_context)


def iso(moment: datetime) -> str:
    """Return a time as RFC 3339 in UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def time(moment: datetime | None) -> Markup:
    """Return the element of a time: in the user's zone with UTC beside it, or in UTC alone where no zone is known.

    The script `times.js` fills in the browser's zone.
    """
    if moment is None:
        return Markup("–")
    utc = moment.astimezone(UTC)
    zone = preferences.zone()
    known = zone is not None and zone != "UTC"
    own = utc.astimezone(ZoneInfo(zone)) if known and zone else utc
    text = Markup('<time datetime="{}" data-zone="{}">{}</time>')
    if not known:
        return text.format(iso(utc), zone or "", f"{utc:%a %d %b %Y %H:%M} UTC")
    beside = f"({utc:%H:%M} UTC)" if own.date() == utc.date() else f"({utc:%a %H:%M} UTC)"
    words = Markup('{} <small class="utc">{}</small>').format(f"{own:%a %d %b %Y %H:%M}", beside)
    return text.format(iso(utc), zone, words)


def value(one: object) -> Markup | str:
    """Return a value of a history: a time as its element, nothing as a word, names with their values."""
    if isinstance(one, datetime):
        return time(one)
    if isinstance(one, Mapping):
        return ", ".join(f"{name} {known}" for name, known in one.items()) or "nothing"
    return "nothing" if one in (None, "") else str(one)


def left(seconds: float) -> str:
    """Return a length of time in words, such as `2 d 3 h`: its two largest units."""
    total = max(0, int(seconds))
    sizes = (("d", 86400), ("h", 3600), ("min", 60))
    parts: list[tuple[int, str]] = []
    for unit, size in sizes:
        number, total = divmod(total, size)
        if number or parts:
            parts.append((number, unit))
    shown = [f"{number} {unit}" for number, unit in parts[:2] if number]
    return " ".join(shown) or "less than a minute"


def _context() -> dict[str, object]:
    own = g.get("caller")
    return {
        "caller": own,
        "theme": preferences.theme(),
        "zone": preferences.zone() or "",
        "here": request.path,
        "places": [(name, path) for name, path, role in PLACES if own is not None and own.has(role)],
        "journal_position": g.get("journal_position"),
        "own_projects": sessions.projects() if own is not None else (),
    }
