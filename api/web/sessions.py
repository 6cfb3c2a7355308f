"""Sessions of browsers: an encrypted cookie with the token of the sign-in, and never a password.

The cookie opens nothing beyond its token: both expire together, and a revoked token ends the session everywhere.
"""

from collections.abc import Sequence
from secrets import token_urlsafe

from cryptography.fernet import InvalidToken
from flask import Flask, Request, Response, current_app, g, session
from flask.json.tag import TaggedJSONSerializer
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionMixin
from itsdangerous import BadSignature

from api import auth
from api.request_context import DEPLOYMENT
from climate.domain.errors import NotAuthenticated
from climate.identity.authentication.page_sign_in import OwnProject
from climate.identity.keys import KeyRing

COOKIE, SECURE_COOKIE = "climate_session", "__Host-climate_session"
"""Name of the cookie. Browsers accept the second only over HTTPS, from this very host and for all of it."""
TOKEN, CSRF = "token", "csrf"
PROJECTS = "projects"
LONGEST_COOKIE = 4000
"""Maximum length of the cookie's value; browsers drop longer ones."""
MOST_PROJECTS = 12


class SealedSerializer:
    """Serializer that encrypts a session with the newest key of a key ring."""

    def __init__(self, keys: KeyRing) -> None:
        self._keys = keys
        self._json = TaggedJSONSerializer()

    def dumps(self, value: dict[str, object]) -> str:
        """Return the text of a cookie."""
        return self._keys.fernet().encrypt(self._json.dumps(value).encode()).decode()

    def loads(self, text: str, max_age: int | None = None) -> dict[str, object]:
        """Return the session in a cookie. Raise BadSignature if it is forged, or older than `max_age` seconds."""
        for look_now in (False, True):  # another process may have just created a key
            try:
                opened = self._keys.fernet(look_now=look_now).decrypt(text.encode(), max_age)
                return dict(self._json.loads(opened.decode()))
            except (InvalidToken, ValueError):
                continue
        raise BadSignature("The session is forged or expired")


class SealedSessions(SecureCookieSessionInterface):
    """Flask's sessions in an encrypted cookie, for pages only: requests of the APIs have none."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._rings: dict[str, KeyRing] = {}

    def get_signing_serializer(self, app: Flask) -> SealedSerializer:  # type: ignore[override]
        """Return the serializer with the keys of the deployment that `app` serves."""
        folder = app.extensions[DEPLOYMENT].settings.home / "keys"
        ring = self._rings.setdefault(str(folder), KeyRing(folder, name="session"))
        return SealedSerializer(ring)

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Return the session of a request for a page, and None for any other."""
        return super().open_session(app, request) if request.path.startswith(self._prefix) else None

    def get_cookie_name(self, app: Flask) -> str:
        """Return the cookie's name, which under HTTPS binds it to this host."""
        return SECURE_COOKIE if self.get_cookie_secure(app) else COOKIE

    def get_cookie_secure(self, app: Flask) -> bool:
        """Return whether users reach the pages over HTTPS alone."""
        url: str = app.extensions[DEPLOYMENT].settings.base_url
        return url.startswith("https://")

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        """Write the cookie if the session was changed; a session that is too large loses its messages."""
        if session.modified and len(self.get_signing_serializer(app).dumps(dict(session))) > LONGEST_COOKIE:
            session.pop("_flashes", None)
        super().save_session(app, session, response)


def install(app: Flask) -> None:
    """Keep the sessions of pages in cookies that end with the browser, or with the token in them."""
    app.config.update(
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_REFRESH_EACH_REQUEST=False,
        PERMANENT_SESSION_LIFETIME=app.extensions[DEPLOYMENT].settings.token_seconds,
    )
    app.session_interface = SealedSessions("/ui")


def enter(token: str, projects: Sequence[OwnProject]) -> None:
    """Begin the session of a user, which takes over nothing of the one before.

    The session remembers the first MOST_PROJECTS projects, so that no page has to look them up.
    """
    session.clear()
    session[TOKEN] = token
    session[CSRF] = token_urlsafe(24)
    session[PROJECTS] = [[project.id, project.name] for project in projects[:MOST_PROJECTS]]


def change_token(token: str) -> None:
    """Go on with the token of another project."""
    session[TOKEN] = token


def projects() -> list[OwnProject]:
    """Return the projects of the user, as they were at the sign-in."""
    return [OwnProject(*one) for one in session.get(PROJECTS, ())]


def sign_out() -> None:
    """Forget the user."""
    session.clear()


def token() -> str:
    """Return the token of the session, or an empty text."""
    return str(session.get(TOKEN, ""))


def csrf_token() -> str:
    """Return the secret that each form of this session carries."""
    if CSRF not in session:
        session[CSRF] = token_urlsafe(24)
    return str(session[CSRF])


def authenticate() -> None:
    """Find the caller of the session. Raise NotAuthenticated without one that is valid."""
    if not token():
        raise NotAuthenticated()
    auth.admit({"X-Auth-Token": token()})


def recognize() -> None:
    """Find the caller where the session has one, for pages that do not need it."""
    try:
        authenticate()
    except NotAuthenticated:
        g.pop("caller", None)


def is_secure() -> bool:
    """Return whether cookies are sent over HTTPS alone."""
    return current_app.session_interface.get_cookie_secure(current_app)
