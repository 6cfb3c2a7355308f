"""Protection of pages: against forged requests by a secret in each form and the origin, and by headers of answers."""

from hmac import compare_digest
from urllib.parse import urlsplit

from flask import Response, request

from api.request_context import deployment
from api.web import sessions
from climate.domain.errors import Forbidden

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    # With no-referrer, browsers would send `Origin: null` with the site's own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
}

FIELD, HEADER = "csrf_token", "X-CSRF-Token"
SAFE = ("GET", "HEAD", "OPTIONS")
FOREIGN = "This request came from another site and was refused: use the page's own form"
STALE = "This form is too old, or belongs to another session: nothing was changed. Load the page again and repeat"


def check() -> None:
    """Raise Forbidden for a request that changes something and was not sent by a page of this session."""
    if request.method in SAFE:
        return
    if not _of_this_site(request.headers.get("Origin") or request.headers.get("Referer") or ""):
        raise Forbidden(FOREIGN)
    given = request.headers.get(HEADER) or request.form.get(FIELD, "")
    if not compare_digest(given.encode(), sessions.csrf_token().encode()):
        raise Forbidden(STALE)


def _of_this_site(url: str) -> bool:
    """Return whether a URL is one of this site, by the host that was asked or by the public URL."""
    try:
        host = urlsplit(url).netloc
    except ValueError:
        return False
    return host != "" and host in (request.host, urlsplit(deployment().settings.base_url).netloc)


def add_headers(response: Response) -> Response:
    """Add the headers; a page is not stored anywhere unless it says so."""
    response.headers.update(HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")
    return response
