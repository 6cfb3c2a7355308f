"""Keypairs of users: public keys by name."""

from typing import Any

from flask import request

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.paging import MOST, Page, cut, next_links, page
from api.request_context import caller, compute, here
from climate.compute.errors import QuotaExceeded
from climate.compute.models import keypair
from climate.compute.store.projects import keypairs, quotas
from climate.compute.store.projects.keypairs import Row
from climate.connections import reading
from climate.domain.errors import Conflict, Forbidden, InvalidInput, NotFound

Body = dict[str, Any]

blueprint = compute_blueprint("keypairs")


@blueprint.get("/os-keypairs")
def listing() -> Body:
    """The keypairs of the caller, or of the user that an administrator names."""
    validation.may_read()
    wanted = page() if since(35) else Page(MOST, None, asked=False)
    with reading(compute().engine) as conn:
        found = keypairs.listed(conn, _whose(request.args.get("user_id")))
    shown, more = cut(found, wanted, lambda row: str(row["name"]))
    body: Body = {"keypairs": [{"keypair": _view(row)} for row in shown]}
    return body | ({"keypairs_links": next_links(here(), shown[-1]["name"], wanted)} if more and since(35) else {})


@blueprint.post("/os-keypairs")
def create() -> tuple[Body, int]:
    """Keep a public key under a name; when none is sent, a pair is made, and its private key told this once."""
    validation.may_write()
    body = validation.part(read_object(), "keypair")
    name, user_id = _name(body), _whose(body.get("user_id"))
    made = keypair.make(name) if body.get("public_key") is None else None
    public = made.public if made else _public(body)
    with compute().engine.begin() as conn:
        most = quotas.limits(conn, caller().project_id)["key_pairs"]
        if 0 <= most <= keypairs.count(conn, user_id):
            raise QuotaExceeded(f"Quota exceeded, too many key pairs: a user may have {most}.")
        row = keypairs.add(conn, user_id, name, public, keypair.fingerprint(public))
    if row is None:
        raise Conflict(f"Key pair '{name}' already exists.")
    told = {"private_key": made.private} if made else {}
    return {"keypair": _view(row) | {"user_id": user_id} | told}, 201 if since(2) else 200


@blueprint.get("/os-keypairs/<name>")
def show(name: str) -> Body:
    """One keypair."""
    validation.may_read()
    user_id = _whose(request.args.get("user_id"))
    with reading(compute().engine) as conn:
        found = keypairs.listed(conn, user_id, name)
    if not found:
        raise _none(name, user_id)
    row = found[0]
    times = {"created_at": f"{row['created_at']:%Y-%m-%dT%H:%M:%S.%f}", "updated_at": None, "deleted_at": None}
    return {"keypair": _view(row) | times | {"id": row["id"], "user_id": user_id, "deleted": False}}


@blueprint.delete("/os-keypairs/<name>")
def delete(name: str) -> tuple[str, int]:
    """Forget a keypair."""
    validation.may_write()
    user_id = _whose(request.args.get("user_id"))
    with compute().engine.begin() as conn:
        if not keypairs.drop(conn, user_id, name):
            raise _none(name, user_id)
    return "", 204 if since(2) else 202


def _whose(user_id: Any) -> str:
    """The user whose keys are meant: the caller, or since 2.10 the one that an administrator names."""
    if user_id is None or not since(10):
        return caller().user_id
    if validation.name(user_id, "user_id") != caller().user_id and not caller().is_admin:
        raise Forbidden("Only administrators see the keypairs of others.")
    return str(user_id)


def _name(body: Body) -> str:
    if body.get("type", "ssh") != "ssh":
        raise InvalidInput("type must be ssh")
    name = body.get("name")
    if not isinstance(name, str):
        raise InvalidInput("name must be a text")
    return keypair.check_name(name)


def _public(body: Body) -> str:
    if not isinstance(body["public_key"], str):
        raise InvalidInput("public_key must be a text")
    return keypair.check_public(body["public_key"])


def _view(row: Row) -> Body:
    seen = {key: row[key] for key in ("name", "public_key", "fingerprint")}
    return seen | ({"type": "ssh"} if since(2) else {})


def _none(name: str, user_id: str) -> NotFound:
    return NotFound(f"Keypair {name[:80]} not found for user {user_id[:80]}")
