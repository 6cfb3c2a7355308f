"""HTTP requests to Keystone, signed with the credentials of an entry of a clouds.yaml."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import structlog
from keystoneauth1.exceptions import ClientException, ConnectFailure
from keystoneauth1.exceptions import ConnectionError as NoConnection
from keystoneauth1.session import Session
from openstack.config import OpenStackConfig
from openstack.exceptions import ConfigException, SDKException
from requests import Response

from climate.domain.errors import NotAuthenticated, Unavailable
from climate.file_errors import UNREADABLE, reason_of
from climate.identity.keystone.outage import Outage
from climate.settings import SettingError, Settings

Body = Mapping[str, Any]

SILENT = "Keystone did not answer, so that the token could not be checked; nothing was changed"
REFUSED = "Keystone refused climate's own credentials, so that the token could not be checked; nothing was changed"
FOREIGN = "Keystone's answer about the token could not be read; nothing was changed"

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Keystone:
    """The Keystone at `url`, which ends in /v3; the session requests and renews the token of climate's own user."""

    session: Session = field(repr=False)
    url: str
    seconds: float
    """Timeout of a request."""
    outage: Outage

    def validate(self, token: str, *, expired_too: bool = False) -> Body:
        """Return the body of a token. Raise NotAuthenticated if it is invalid, and Unavailable without an answer.

        `expired_too` accepts a token for the time after its expiry that Keystone allows to services.
        """
        query = {"nocatalog": "1", **({"allow_expired": "1"} if expired_too else {})}
        answer = self._get("/auth/tokens", {"X-Subject-Token": token}, query)
        if answer.status_code == 404:
            raise NotAuthenticated()
        if answer.status_code in (401, 403):
            raise self._failed(REFUSED, f"status {answer.status_code}: {_message(answer)}")
        if answer.status_code != 200:
            raise self._failed(SILENT, f"status {answer.status_code}")
        return self._body(answer)

    def user(self, user_id: str) -> Body:
        """Return a user; an empty one if Keystone does not show it. Raise Unavailable without an answer."""
        answer = self._get(f"/users/{quote(user_id, safe='')}", {}, {})
        if answer.status_code >= 500:
            raise self._failed("Keystone did not show a user", f"status {answer.status_code}")
        try:
            shown = answer.json()["user"] if answer.status_code == 200 else {}
        except (ValueError, LookupError, TypeError):
            shown = {}
        return shown if isinstance(shown, dict) else {}

    def issue(self, proof: Mapping[str, object], scope: object) -> str:
        """Return a token for a proof of identity. Raise NotAuthenticated if it is refused, Unavailable without answer.

        Keystone, and not climate, judges the proof; it is sent without climate's own token, and never logged.
        """
        answer = self._send("POST", "/auth/tokens", {}, json={"auth": {"identity": proof, "scope": scope}})
        if answer.status_code in (400, 401, 403, 404):
            raise NotAuthenticated()
        token = answer.headers.get("X-Subject-Token")
        if answer.status_code != 201 or not token:
            raise self._failed("Keystone did not issue a token", f"status {answer.status_code}")
        return str(token)

    def projects(self, token: str) -> list[tuple[str, str]]:
        """Return ids and names of the enabled projects of the holder of a token."""
        answer = self._send("GET", "/auth/projects", {"X-Auth-Token": token})
        if answer.status_code == 401:
            raise NotAuthenticated()
        try:
            known: list[dict[str, object]] = answer.json()["projects"]
            return [(str(one["id"]), str(one["name"])) for one in known if one.get("enabled", True)]
        except (ValueError, LookupError, TypeError, AttributeError):
            raise self._failed("Keystone did not list projects", f"status {answer.status_code}") from None

    def revoke(self, token: str) -> None:
        """Revoke a token, in its holder's name; one that is no longer valid is left as it is."""
        answer = self._send("DELETE", "/auth/tokens", {"X-Auth-Token": token, "X-Subject-Token": token})
        if answer.status_code not in (204, 401, 404):
            raise self._failed("Keystone did not revoke a token", f"status {answer.status_code}")

    def own_token(self) -> str:
        """Return a token of climate's own user. Raise Unavailable if Keystone issues none."""
        try:
            token = self.session.get_token()
        except (ClientException, SDKException, OSError) as error:
            raise self._failed(_meaning(error), _short(error)) from None
        return str(token)

    def endpoints(self, kind: str) -> list[str]:
        """Return the public URLs of the services of a type, in the catalog of climate's own user."""
        try:
            catalog = self._get("/auth/catalog", {}, {}).json()["catalog"]
            services = [one for one in catalog if one["type"] == kind]
            urls = [one["url"] for each in services for one in each["endpoints"] if one["interface"] == "public"]
        except (ValueError, LookupError, TypeError):
            raise self._failed("Keystone's catalog could not be read", "it has no catalog") from None
        return sorted(str(url).rstrip("/") for url in urls)

    def _get(self, path: str, headers: Mapping[str, str], query: Mapping[str, str]) -> Response:
        return self._send("GET", path, headers, params=dict(query), authenticated=True)

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], *, authenticated: bool = False, **content: Any
    ) -> Response:
        """Send a request, `authenticated` by climate's own token. Raise Unavailable without an answer."""
        request = partial(
            self.session.request,
            self.url + path,
            method,
            headers=dict(headers),
            raise_exc=False,
            timeout=self.seconds,
            authenticated=authenticated,
            log=authenticated,
            **content,
        )
        self.outage.enter()
        try:
            answer: Response = _repeated(request) if method == "GET" else request()
        except NoConnection as error:
            self.outage.begin()
            raise self._failed(SILENT, _short(error)) from None
        except (ClientException, SDKException, OSError, ValueError) as error:
            raise self._failed(_meaning(error), _short(error)) from None
        self.outage.end()
        return answer

    def _body(self, answer: Response) -> Body:
        try:
            token = answer.json()["token"]
        except (ValueError, LookupError, TypeError):
            token = None
        if not isinstance(token, dict):
            raise self._failed(FOREIGN, "it has no token")
        return token

    def _failed(self, says: str, reason: str) -> Unavailable:
        log.warning("Keystone did not validate a token", url=self.url, reason=reason)
        return Unavailable(says)


def _repeated(request: Callable[[], Response]) -> Response:
    """Send a request that only reads; once more if Keystone has closed the connection, as it does with idle ones."""
    try:
        return request()
    except ConnectFailure:
        return request()


def connect(settings: Settings) -> Keystone:
    """Return the Keystone of an entry of clouds.yaml, without a request to it. Raise SettingError for a bad entry."""
    entry, config = entry_of(settings)
    if not entry:
        raise SettingError("CLIMATE_IDENTITY=keystone needs CLIMATE_KEYSTONE_CLOUD, an entry of clouds.yaml")
    if config and not Path(config).is_file():
        raise SettingError(f"CLIMATE_KEYSTONE_CONFIG={config!r} is not a file")
    where = config or "the clouds.yaml that the SDK finds"
    try:
        known = OpenStackConfig(config_files=[config] if config else None, load_envvars=False)
        region = known.get_one(entry, api_timeout=settings.keystone_seconds)
        session, url = region.get_session(), str(region.get_auth_args().get("auth_url") or "")
    except (ConfigException, ClientException) as error:
        raise SettingError(f"CLIMATE_KEYSTONE_CLOUD={entry!r} of {where} cannot be used: {_short(error)}") from None
    except (*UNREADABLE, AttributeError, KeyError, TypeError) as error:
        why = f"{reason_of(error)}; a mapping named clouds is expected"
        raise SettingError(f"CLIMATE_KEYSTONE_CLOUD={entry!r}: {where} cannot be read: {why}") from None
    if not url:
        raise SettingError(f"CLIMATE_KEYSTONE_CLOUD={entry!r} of {where} has no auth_url")
    return Keystone(session, versioned(url), settings.keystone_seconds, Outage(settings.keystone_seconds))


def entry_of(settings: Settings) -> tuple[str, str]:
    """Return the entry and the file of the credentials; without one of its own, those of the OpenStack cloud."""
    if settings.keystone_cloud or settings.cloud != "openstack":
        return settings.keystone_cloud, settings.keystone_config
    return settings.openstack_cloud, settings.openstack_config


def versioned(url: str) -> str:
    """Return the URL of Identity v3 for an auth_url with or without a version."""
    plain = url.rstrip("/")
    return plain if plain.endswith("/v3") else f"{plain}/v3"


def _meaning(error: Exception) -> str:
    status = getattr(error, "http_status", None)
    return REFUSED if status in (401, 403) else SILENT


def _message(answer: Response) -> str:
    try:
        return _short(answer.json()["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return "no reason given"


def _short(reason: object) -> str:
    return " ".join(str(reason).split())[:300]
