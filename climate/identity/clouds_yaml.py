"""`clouds.yaml`: addresses and credentials of this deployment for OpenStack clients."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from climate.file_errors import UNREADABLE, reason_of
from climate.identity import private_files
from climate.identity.models import DOMAIN_NAME

REGION = "RegionOne"
IDENTITY_PATH = "/identity/v3"

USERS = {"climate": "admin", "climate-demo": "demo"}
"""Maps a cloud to the user, and project, that it signs in as."""


@dataclass(frozen=True, slots=True)
class InitialPassword:
    """The initial password of a user, if it is still known, and whether the user was just created."""

    password: str | None = field(repr=False)
    new: bool


def write(path: Path, base_url: str, known: Mapping[str, InitialPassword], echo: Callable[[str], None]) -> None:
    """Write the file, or update the clouds of this deployment in it with `base_url`; keep other clouds.

    A password in the file takes precedence over the initial password of an existing user, which may have been changed
    since.
    """
    try:
        present = _read(path)
    except UNREADABLE as error:
        echo(f"{path} cannot be read and was left alone: {reason_of(error)}; move it away to get a new one")
        return
    wanted = dict(present.get("clouds") or {})
    for cloud, user in USERS.items():
        kept = known[user]
        password = kept.password if kept.new else _password_in(wanted.get(cloud)) or kept.password
        if password is None:
            echo(f"{path} has no cloud {cloud}: the password of user {user} is known to nobody here")
            continue
        wanted[cloud] = {**_dict(wanted.get(cloud)), **_cloud(base_url, user, password)}
    changed = {**present, "clouds": wanted}
    if changed != present or not path.exists():
        private_files.write(path, yaml.safe_dump(changed, sort_keys=False))


def address(path: Path) -> str | None:
    """Return the URL of the APIs in the file, which a command cannot derive from its own settings; None if unknown."""
    try:
        clouds = _dict(_read(path).get("clouds"))
    except UNREADABLE:
        return None
    url = _dict(_dict(clouds.get(next(iter(USERS)))).get("auth")).get("auth_url")
    return url.removesuffix(IDENTITY_PATH) if isinstance(url, str) and url.endswith(IDENTITY_PATH) else None


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    present = yaml.safe_load(path.read_text(encoding="utf-8"))
    if present is None:
        return {}
    if not isinstance(present, dict) or not isinstance(present.get("clouds") or {}, dict):
        raise yaml.YAMLError("not a file of clouds")
    return present


def _cloud(base_url: str, user: str, password: str) -> dict[str, object]:
    return {
        "auth": {
            "auth_url": f"{base_url}{IDENTITY_PATH}",
            "username": user,
            "password": password,
            "project_name": user,
            "user_domain_name": DOMAIN_NAME,
            "project_domain_name": DOMAIN_NAME,
        },
        "region_name": REGION,
        "identity_api_version": 3,
    }


def _password_in(cloud: object) -> str | None:
    password = _dict(_dict(cloud).get("auth")).get("password")
    return password if isinstance(password, str) else None


def _dict(value: Any) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
