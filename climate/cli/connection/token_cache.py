"""Tokens of past commands, kept in the cache directory of the user until they expire.

One file for each URL, user and project, readable by its owner alone.  A file is used with the same password only: it
has a salted digest of the credentials, and no credentials.
"""

import hashlib
import hmac
import json
import os
import secrets
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from climate.cli.connection.clouds import CloudEntry

if TYPE_CHECKING:
    from climate.cli.response_types.identity import TokenBody

MARGIN = 60.0
"""Seconds before its end from which a token is not used any more, because a command must end with it."""
ROUNDS = 2**12


@dataclass(frozen=True, slots=True)
class Kept:
    """A token with its body, as an earlier command received it."""

    id: str
    body: "TokenBody"


@dataclass(frozen=True, slots=True)
class TokenCache:
    """The cache directory of a user; without a folder nothing is kept."""

    folder: Path | None

    def find(self, cloud: CloudEntry) -> Kept | None:
        """Return the token for these credentials; None if there is none that is valid for a while."""
        if self.folder is None:
            return None
        try:
            kept = json.loads(self._path(cloud).read_text(encoding="utf-8"))
            begun, ends = float(kept["begun"]), float(kept["ends"])
            same = hmac.compare_digest(kept["digest"], _digest(cloud, bytes.fromhex(kept["salt"])))
            if not same or not begun - MARGIN <= time.time() < ends - MARGIN:
                return None
            return Kept(str(kept["id"]), cast("TokenBody", dict(kept["body"])))
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None

    def keep(self, cloud: CloudEntry, token: Kept, seconds: float) -> None:
        """Keep a token for so many seconds; a directory that cannot be written to keeps none."""
        if self.folder is None or seconds <= MARGIN:
            return
        salt, begun = secrets.token_bytes(16), time.time()
        content = {
            "digest": _digest(cloud, salt), "salt": salt.hex(), "begun": begun, "ends": begun + seconds,
            "id": token.id, "body": dict(token.body),
        }  # fmt: skip
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace(self._path(cloud), json.dumps(content))

    def drop(self, cloud: CloudEntry) -> None:
        """Delete the token of a cloud and user."""
        if self.folder is not None:
            with suppress(OSError):
                self._path(cloud).unlink()

    def _path(self, cloud: CloudEntry) -> Path:
        """Return the path for a URL, user and project; its name is a digest of what is no secret."""
        named = json.dumps([cloud.auth_url, _without_secrets(cloud.methods), cloud.scope], sort_keys=True)
        return Path(self.folder or ".", f"{hashlib.sha256(named.encode()).hexdigest()[:32]}.json")


def folder_of(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of tokens in the user's cache directory; None if the user has no home."""
    base = environ.get("XDG_CACHE_HOME") or ""
    if base.startswith("/"):
        return Path(base, "climate", "tokens")
    return Path(environ["HOME"], ".cache", "climate", "tokens") if environ.get("HOME") else None


def _replace(path: Path, text: str) -> None:
    """Write a file at once, with mode 0600: a reader sees the old content or the new one."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".token-")
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _digest(cloud: CloudEntry, salt: bytes) -> str:
    said = json.dumps([cloud.auth_url, cloud.methods, cloud.scope], sort_keys=True)
    return hashlib.scrypt(said.encode(), salt=salt, n=ROUNDS, r=8, p=1).hex()


def _without_secrets(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _without_secrets(one) for key, one in value.items() if key not in ("password", "secret")} | (
            {"password": _without_secrets(value["password"])} if isinstance(value.get("password"), Mapping) else {}
        )
    return value
