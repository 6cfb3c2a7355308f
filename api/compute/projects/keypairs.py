"""Keypairs of users: public keys by name."""

from collections.abc import Mapping

from flask import request

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.projects.keypair_bodies import NEW
from api.paging import MOST, Page, cut, next_links, page
from api.request_context import caller, compute, here
from climate.compute.models import keypair
from climate.compute.projects import keypairs
from climate.compute.store.projects.keypairs import Row
from climate.domain.errors import Forbidden

Body = dict[str, object]

blueprint = compute_blueprint("keypairs")


@blueprint.get("/os-keypairs")
def listing() -> Body:
    """List the keypairs of the caller, or of the user that an administrator names."""
    validation.may_read()
    wanted = page() if since(35) else Page(MOST, None, asked=False)
    rows = keypairs.listed(compute(), _owner(request.args.get("user_id")))
    shown, more = cut(rows, wanted, lambda row: str(row["name"]))
    body: Body = {"keypairs": [{"keypair": _view(row)} for row in shown]}
    return body | ({"keypairs_links": next_links(here(), shown[-1]["name"], wanted)} if more and since(35) else {})


@blueprint.post("/os-keypairs")
def create() -> tuple[Body, int]:
    """Create a keypair; if no public key is sent, only this answer has the private key."""
    validation.may_write()
    body = read_object()
    user_id = _owner(_user_of(body))  # a caller without the right learns nothing of the other fields
    wanted = NEW.read(body)
    name = wanted["name"]
    made = keypair.generate(name) if wanted["public_key"] is None else None
    public = made.public if made else wanted["public_key"]
    row = keypairs.create(compute(), user_id, caller().project_id, name, public)
    private = {"private_key": made.private} if made else {}
    return {"keypair": _view(row) | {"user_id": user_id} | private}, 201 if since(2) else 200


@blueprint.get("/os-keypairs/<name>")
def show(name: str) -> Body:
    """Show one keypair."""
    validation.may_read()
    user_id = _owner(request.args.get("user_id"))
    row = keypairs.get(compute(), user_id, name)
    times = {"created_at": f"{row['created_at']:%Y-%m-%dT%H:%M:%S.%f}", "updated_at": None, "deleted_at": None}
    return {"keypair": _view(row) | times | {"id": row["id"], "user_id": user_id, "deleted": False}}


@blueprint.delete("/os-keypairs/<name>")
def delete(name: str) -> tuple[str, int]:
    """Delete a keypair."""
    validation.may_write()
    keypairs.delete(compute(), _owner(request.args.get("user_id")), name)
    return "", 204 if since(2) else 202


def _owner(user_id: object) -> str:
    """Return the user of the keypairs: the caller, or since 2.10 the one that an administrator names."""
    if user_id is None or not since(10):
        return caller().user_id
    if validation.name(user_id, "user_id") != caller().user_id and not caller().is_admin:
        raise Forbidden("Only administrators see the keypairs of others.")
    return str(user_id)


def _user_of(body: Mapping[str, object]) -> object:
    keypair = body.get("keypair")
    return keypair.get("user_id") if isinstance(keypair, dict) else None


def _view(row: Row) -> Body:
    seen = {key: row[key] for key in ("name", "public_key", "fingerprint")}
    return seen | ({"type": "ssh"} if since(2) else {})
