"""Application credentials of a user."""

from datetime import UTC, datetime
from typing import Any

from flask import Blueprint, request

from api.body import read_object
from api.identity import validation, views
from api.request_context import caller, identity
from climate.domain.errors import Forbidden, InvalidInput
from climate.identity import credentials as verbs
from climate.identity import lookup
from climate.identity.credentials import NewCredential
from climate.identity.models import ROLES
from climate.identity.tokens import Grant
from climate.service.leases import dates

blueprint = Blueprint("identity-credentials", __name__, url_prefix="/identity/v3/users/<user_id>")


@blueprint.get("/application_credentials")
def listing(user_id: str) -> dict[str, Any]:
    """List the caller's credentials."""
    _only_oneself(user_id)
    found = lookup.credentials(identity(), user_id, request.args.get("name"))
    return views.listing("application_credentials", [views.credential(one) for one in found])


@blueprint.post("/application_credentials")
def create(user_id: str) -> tuple[dict[str, Any], int]:
    """Create a credential; only this answer has its secret."""
    _only_oneself(user_id)
    body = validation.part(read_object(), "application_credential")
    new = NewCredential(
        name=validation.text(body, "name"),
        secret=validation.optional(body, "secret"),
        roles=_roles(body.get("roles")),
        description=validation.optional(body, "description") or "",
        unrestricted=validation.flag(body, "unrestricted", False),
        expires_at=_moment(validation.optional(body, "expires_at")),
    )
    if body.get("access_rules"):
        raise InvalidInput("access_rules are not supported; omit them")
    made, secret = verbs.create(identity(), _grant(), caller(), new)
    return {"application_credential": views.credential(made, secret)}, 201


@blueprint.get("/application_credentials/<credential_id>")
def show(user_id: str, credential_id: str) -> dict[str, Any]:
    """Show one of the caller's credentials."""
    _only_oneself(user_id)
    return {"application_credential": views.credential(lookup.credential(identity(), user_id, credential_id))}


@blueprint.delete("/application_credentials/<credential_id>")
def remove(user_id: str, credential_id: str) -> tuple[str, int]:
    """Delete a credential and the tokens issued with it."""
    _only_oneself(user_id)
    verbs.remove(identity(), _grant(), caller(), user_id, credential_id)
    return "", 204


def _only_oneself(user_id: str) -> None:
    if user_id != caller().user_id:
        raise Forbidden()


def _grant() -> Grant:
    return identity().grant(request.headers, request.remote_addr or "")


def _roles(given: Any) -> tuple[str, ...]:
    """Return roles given by id or by name, which are the same."""
    if not given:
        return ()
    if not isinstance(given, list) or not all(isinstance(role, dict) for role in given):
        raise InvalidInput("roles must be a list of objects with id or name")
    names = tuple(str(role.get("id") or role.get("name")) for role in given)
    if set(names) - set(ROLES):
        raise InvalidInput(f"roles must be of {', '.join(ROLES)}")
    return names


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput("expires_at must be a date and time like 2030-01-31T12:00:00") from None
    if not dates.EARLIEST <= moment <= dates.LATEST:
        raise InvalidInput("expires_at is out of range: years 2000 to 2199")
    return moment
