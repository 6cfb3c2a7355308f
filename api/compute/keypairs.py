"""Keypairs of a user: public keys by name."""

import base64
import binascii
import hashlib
from typing import Any

from api.body import read_object
from api.compute import asked
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.servers import compute
from api.current import caller
from api.paging import cut, page
from climate.compute.store import projects
from climate.domain.errors import Conflict, InvalidInput, NotFound

Body = dict[str, Any]

blueprint = compute_blueprint("keypairs")


@blueprint.get("/os-keypairs")
def listing() -> Body:
    """The caller's keypairs."""
    asked.may_read()
    with compute().engine.connect() as conn:
        found = projects.keypairs(conn, caller().user_id)
    shown, _ = cut(found, page(), lambda row: str(row["name"]))
    return {"keypairs": [{"keypair": _view(row)} for row in shown]}


@blueprint.post("/os-keypairs")
def create() -> tuple[Body, int]:
    """Keep a public key under a name."""
    asked.may_write()
    body = asked.part(read_object(), "keypair")
    name, key = asked.name(body.get("name")), body.get("public_key")
    if not isinstance(key, str) or len(key) > 16384:
        raise InvalidInput("public_key must be a public key; the private one stays with its owner")
    row = {"name": name, "public_key": key, "fingerprint": _fingerprint(key)}
    with compute().engine.begin() as conn:
        if not projects.add_keypair(conn, caller().user_id, name, key, row["fingerprint"]):
            raise Conflict(f"Key pair '{name}' already exists.")
    return {"keypair": _view(row) | {"user_id": caller().user_id}}, 201 if since(2) else 200


@blueprint.get("/os-keypairs/<name>")
def show(name: str) -> Body:
    """One keypair."""
    asked.may_read()
    with compute().engine.connect() as conn:
        found = projects.keypairs(conn, caller().user_id, name)
    if not found:
        raise _none(name)
    row = found[0]
    times = {"created_at": f"{row['created_at']:%Y-%m-%dT%H:%M:%S.%f}", "updated_at": None, "deleted_at": None}
    more = {"id": 1, "user_id": caller().user_id, "deleted": False}
    return {"keypair": _view(row) | more | times}


@blueprint.delete("/os-keypairs/<name>")
def delete(name: str) -> tuple[str, int]:
    """Forget a keypair."""
    asked.may_write()
    with compute().engine.begin() as conn:
        if not projects.drop_keypair(conn, caller().user_id, name):
            raise _none(name)
    return "", 204 if since(2) else 202


def _view(row: Body) -> Body:
    seen = {key: row[key] for key in ("name", "public_key", "fingerprint")}
    return seen | ({"type": "ssh"} if since(2) else {})


def _fingerprint(key: str) -> str:
    """MD5 of the key's middle part, as ssh-keygen -l -E md5 shows it: a name for the key, not a protection."""
    parts = key.split()
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except (IndexError, binascii.Error, ValueError):
        raise InvalidInput("public_key must be like 'ssh-ed25519 AAAA… comment'") from None
    digest = hashlib.md5(blob, usedforsecurity=False).hexdigest()
    return ":".join(digest[place : place + 2] for place in range(0, len(digest), 2))


def _none(name: str) -> NotFound:
    return NotFound(f"Keypair {name[:80]} not found for user {caller().user_id}")
