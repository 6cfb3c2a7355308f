"""Application credentials of a user."""

from flask import Blueprint, request

from api.body import read_object
from api.identity import bodies, views
from api.request_context import caller, identity
from climate.domain.errors import Forbidden
from climate.identity import credentials, read_operations
from climate.identity.authentication.tokens import Grant
from climate.identity.credentials import NewCredential
from climate.identity.models import Credential

blueprint = Blueprint("identity-credentials", __name__, url_prefix="/identity/v3/users/<user_id>")


@blueprint.get("/application_credentials")
def listing(user_id: str) -> dict[str, object]:
    """List the caller's credentials."""
    _only_oneself(user_id)
    credentials = read_operations.credentials(identity(), user_id, request.args.get("name"))
    return views.listing("application_credentials", [_view(credential) for credential in credentials])


@blueprint.post("/application_credentials")
def create(user_id: str) -> tuple[dict[str, object], int]:
    """Create a credential; only this answer has its secret."""
    _only_oneself(user_id)
    given = bodies.CREDENTIAL.read(read_object())
    new = NewCredential(
        name=given["name"],
        secret=given["secret"],
        roles=given["roles"],
        description=given["description"] or "",
        unrestricted=given["unrestricted"],
        expires_at=given["expires_at"],
    )
    made, secret = credentials.create(identity(), _grant(), caller(), new)
    return {"application_credential": _view(made, secret)}, 201


@blueprint.get("/application_credentials/<credential_id>")
def show(user_id: str, credential_id: str) -> dict[str, object]:
    """Show one of the caller's credentials."""
    _only_oneself(user_id)
    return {"application_credential": _view(read_operations.credential(identity(), user_id, credential_id))}


@blueprint.delete("/application_credentials/<credential_id>")
def remove(user_id: str, credential_id: str) -> tuple[str, int]:
    """Delete a credential and the tokens issued with it."""
    _only_oneself(user_id)
    credentials.remove(identity(), _grant(), caller(), user_id, credential_id)
    return "", 204


def _view(one: Credential, secret: str | None = None) -> dict[str, object]:
    return views.credential(one, read_operations.named_roles(identity(), one.roles), secret)


def _only_oneself(user_id: str) -> None:
    if user_id != caller().user_id:
        raise Forbidden()


def _grant() -> Grant:
    return identity().grant(request.headers, request.remote_addr or "")
