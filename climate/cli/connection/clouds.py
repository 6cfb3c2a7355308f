"""Choice of the cloud: an entry of clouds.yaml, or the OS_* variables of the environment."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from climate.cli.errors import NOT_ALLOWED, USAGE, Failure
from climate.file_errors import UNREADABLE, reason_of

DEFAULT = "climate"


@dataclass(frozen=True, slots=True)
class CloudEntry:
    """The URL of Identity, and the credentials for it."""

    auth_url: str
    methods: Mapping[str, object]
    """The `identity` part of the body of a login: methods and their data."""
    scope: Mapping[str, object] | None
    interface: str = "public"
    region: str = ""
    verify: bool | str = True
    source: str = ""


def find(name: str | None, environ: Mapping[str, str], home: Path) -> CloudEntry:
    """Return the entry `name`, or that of OS_CLOUD, or that of OS_AUTH_URL and its like, or `climate`."""
    wanted = name or environ.get("OS_CLOUD", "")
    if not wanted and environ.get("OS_AUTH_URL"):
        return entry({"auth": _from_variables(environ)}, "the OS_* variables")
    wanted = wanted or DEFAULT
    looked = list(dict.fromkeys(files(environ, home)))
    for path in looked:
        result = entries(path).get(wanted)
        if isinstance(result, Mapping):
            return entry(result, f"{wanted} in {path}")
    where = f"no cloud {wanted!r} in any of {', '.join(map(str, looked))}"
    if names := list(dict.fromkeys(str(known) for path in looked for known in entries(path))):
        raise Failure(where, USAGE, f"choose one of {', '.join(names)} with OS_CLOUD or --os-cloud")
    raise Failure(
        where,
        USAGE,
        "start one with `climate up`, set CLIMATE_HOME to the home of a running one, or name another with --os-cloud; "
        "`climate clouds write` writes a lost file again",
    )


def files(environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Return the paths of clouds.yaml, in the order of search."""
    if environ.get("OS_CLIENT_CONFIG_FILE"):
        yield Path(environ["OS_CLIENT_CONFIG_FILE"])
    yield home / "clouds.yaml"
    yield Path("clouds.yaml")
    if environ.get("HOME"):
        yield Path(environ["HOME"], ".config", "openstack", "clouds.yaml")
    yield Path("/etc/openstack/clouds.yaml")


def entries(path: Path) -> Mapping[str, object]:
    """Return the clouds of a file; none if there is no file. Raise Failure for a file that is not usable."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except PermissionError:
        raise Failure(f"{path} cannot be read", NOT_ALLOWED, "run the command as the owner of the file") from None
    except UNREADABLE as wrong:
        raise Failure(f"{path} is not usable: {reason_of(wrong)}", USAGE, "correct it, or move it away") from None
    clouds = content.get("clouds") if isinstance(content, dict) else content
    if clouds is not None and not isinstance(clouds, dict):
        raise Failure(f"{path} is not usable: a mapping named clouds is expected", USAGE, "correct it, or move it away")
    return clouds or {}


def _from_variables(environ: Mapping[str, str]) -> dict[str, str]:
    return {key[3:].lower(): value for key, value in environ.items() if key.startswith("OS_") and value}


def entry(cloud: Mapping[str, object], source: str) -> CloudEntry:
    """Return a cloud's settings as an entry; Failure names what is missing."""
    auth = cloud.get("auth") or {}
    if not isinstance(auth, Mapping) or not auth.get("auth_url"):
        raise Failure(f"{source} has no auth_url", USAGE, "correct clouds.yaml")
    check_url(str(auth["auth_url"]), f"auth_url of {source}")
    by_credential = bool(auth.get("application_credential_id") or auth.get("application_credential_name"))
    cacert = cloud.get("cacert")
    return CloudEntry(
        auth_url=str(auth["auth_url"]).rstrip("/"),
        methods=_application_credential(auth) if by_credential else _password(auth, source),
        scope=None if by_credential else _scope(auth),
        interface=str(cloud.get("interface", "public")),
        region=str(cloud.get("region_name") or ""),
        verify=False if cloud.get("verify") is False else str(cacert) if cacert else True,
        source=source,
    )


def check_url(url: str, what: str) -> None:
    """Raise Failure unless a URL has a scheme and a host."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        shown = "" if "@" in url else f": {url[:80]!r}"  # a password may stand before @
        raise Failure(f"{what} is not a URL{shown}", USAGE, "write it like http://127.0.0.1:8000/identity/v3")


def _password(auth: Mapping[str, object], source: str) -> dict[str, object]:
    if auth.get("password") is None or not (auth.get("username") or auth.get("user_id")):
        raise Failure(f"{source} has no username or no password", NOT_ALLOWED, "add them to clouds.yaml")
    user = _named(auth, "user", "username")
    return {"methods": ["password"], "password": {"user": {**user, "password": str(auth["password"])}}}


def _application_credential(auth: Mapping[str, object]) -> dict[str, object]:
    secret = str(auth.get("application_credential_secret") or "")
    if auth.get("application_credential_id"):
        credential: dict[str, object] = {"id": str(auth["application_credential_id"]), "secret": secret}
    else:
        name = str(auth["application_credential_name"])
        credential = {"name": name, "secret": secret, "user": _named(auth, "user", "username")}
    return {"methods": ["application_credential"], "application_credential": credential}


def _scope(auth: Mapping[str, object]) -> dict[str, object] | None:
    if auth.get("project_id") or auth.get("project_name"):
        return {"project": _named(auth, "project", "project_name")}
    return None


def _named(auth: Mapping[str, object], noun: str, name_key: str) -> dict[str, object]:
    """Return `{"id": …}`, or `{"name": …, "domain": …}` with the domain of the name."""
    if auth.get(f"{noun}_id"):
        return {"id": str(auth[f"{noun}_id"])}
    if domain_id := auth.get(f"{noun}_domain_id") or auth.get("domain_id"):
        domain = {"id": str(domain_id)}
    else:
        domain = {"name": str(auth.get(f"{noun}_domain_name") or auth.get("domain_name") or "Default")}
    return {"name": str(auth[name_key]), "domain": domain}
