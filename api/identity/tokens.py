"""Tokens: issue, validate and revoke."""

from flask import Blueprint, Response, current_app, jsonify, request

from api.auth import TOKENS, public
from api.body import read_object
from api.identity import sign_in_bodies
from api.identity.catalog import catalog
from api.identity.views import domain_of, listing, moment, project
from api.request_context import caller, deployment, identity
from climate.domain.errors import InvalidInput, NotAuthenticated, NotFound
from climate.domain.policy import require
from climate.identity import read_operations
from climate.identity.authentication import request_authentication, sign_in
from climate.identity.authentication.tokens import Grant, seal
from climate.identity.models import Scope

blueprint = Blueprint("identity-tokens", __name__, url_prefix="/identity/v3/auth")


@blueprint.post("/tokens")
@public
def issue() -> Response:
    """Issue a token."""
    proof, scope = sign_in_bodies.sign_in(read_object())
    grant = _prove(proof, scope)
    response = _shown(grant)
    response.status_code = 201
    response.headers["X-Subject-Token"] = seal(identity().keys, grant)
    response.headers["Vary"] = "X-Auth-Token"
    return response


@blueprint.get("/tokens")
def show() -> Response:
    """Validate a token for a service that received it."""
    token, grant = _subject()
    response = _shown(grant)
    response.headers["X-Subject-Token"] = token
    return response


@blueprint.delete("/tokens")
def revoke() -> tuple[str, int]:
    """Revoke a token."""
    _, grant = _subject()
    _spend(caller().user_id)
    sign_in.sign_out(identity(), grant)
    return "", 204


@blueprint.get("/projects")
def own_projects() -> dict[str, object]:
    """List the projects for which the caller can request a token."""
    return listing("projects", [project(one) for one in read_operations.usable_projects(identity(), caller().user_id)])


@blueprint.get("/domains")
def own_domains() -> dict[str, object]:
    """List no domains: tokens are scoped to projects only."""
    return listing("domains", [])


@blueprint.get("/system")
def own_system() -> dict[str, object]:
    """List the system if the caller has a role in it, and can request a token for it."""
    own = read_operations.effective_roles(identity(), caller().user_id, None)
    return listing("system", [{"all": True}] if own else [])


def _prove(proof: sign_in_bodies.Proof, scope: Scope | None) -> Grant:
    address = request.remote_addr or ""
    match proof:
        case sign_in_bodies.Password():
            return sign_in.by_password(identity(), proof.who, proof.password, scope, address)
        case sign_in_bodies.Token():
            old = request_authentication.of_token(identity(), proof.token)
            _spend(old.user_id)
            return sign_in.by_token(identity(), old, scope)
        case sign_in_bodies.Secret():
            return sign_in.by_credential(identity(), proof.who, proof.owner, proof.secret, address)


def _spend(user_id: str) -> None:
    """Count a token that a user exchanges or revokes; TooManyRequests above the limit of a second."""
    current_app.extensions[TOKENS].spend(user_id)


def _subject() -> tuple[str, Grant]:
    token = request.headers.get("X-Subject-Token")
    if not token:
        raise InvalidInput("The header X-Subject-Token must name a token")
    try:
        grant = request_authentication.of_token(identity(), token)
    except NotAuthenticated:
        raise NotFound("This is not a recognized Fernet token") from None
    if grant.user_id != caller().user_id:
        require(caller(), "identity:admin")
    return token, grant


def _shown(grant: Grant) -> Response:
    user = {"id": grant.user_id, "name": grant.user_name, "domain": domain_of(grant.user_domain_id)}
    token: dict[str, object] = {
        "methods": list(grant.methods),
        "user": {**user, "password_expires_at": None},
        "audit_ids": list(grant.audit_ids[:2]),
        "issued_at": moment(grant.issued_at),
        "expires_at": moment(grant.expires_at),
    }
    if grant.project_id:
        domain = domain_of(grant.project_domain_id)
        token["project"] = {"id": grant.project_id, "name": grant.project_name, "domain": domain}
        token["is_domain"] = False
    if grant.is_system:
        token["system"] = {"all": True}
    if grant.project_id or grant.is_system:
        found = read_operations.named_roles(identity(), grant.roles)
        token["roles"] = [{"id": role.id, "name": role.name} for role in found]
        token["catalog"] = catalog(deployment().settings.base_url)
    if grant.credential_id:
        token["application_credential"] = {"id": grant.credential_id, "restricted": grant.restricted}
    return jsonify(token=token)
