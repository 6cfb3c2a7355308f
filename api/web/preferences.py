"""Preferences of a browser: colours and time zone, in cookies that hold no secret."""

from zoneinfo import available_timezones

from flask import Response, request

from api.web import sessions
from climate.domain.errors import InvalidInput

THEME, ZONE = "climate_theme", "climate_zone"
THEMES = ("system", "light", "dark")
YEAR = 365 * 86400


def theme() -> str:
    """Return the colours that the user chose: `light`, `dark`, or `system`."""
    chosen = request.cookies.get(THEME, "")
    return chosen if chosen in THEMES else THEMES[0]


def zone() -> str | None:
    """Return the IANA name of the time zone that the user chose; None without a choice."""
    chosen = request.cookies.get(ZONE, "")
    return chosen if chosen in available_zones() else None


def available_zones() -> frozenset[str]:
    """Return the names of all time zones that this machine knows."""
    return _ZONES


def keep(response: Response, name: str, value: str) -> None:
    """Write a preference; an empty one returns to the default."""
    if name == THEME and value not in THEMES:
        raise InvalidInput(f"theme: {value[:20]!r} is none of {', '.join(THEMES)}")
    if name == ZONE and value and value not in available_zones():
        raise InvalidInput(f"zone: {value[:40]!r} is not a time zone; expected is one such as Europe/Berlin")
    response.set_cookie(
        name, value, max_age=YEAR if value else 0, httponly=True, samesite="Lax", secure=sessions.is_secure()
    )


_ZONES = frozenset(name for name in available_timezones() if "/" in name or name == "UTC")
