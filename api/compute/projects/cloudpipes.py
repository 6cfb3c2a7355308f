"""Cloudpipes of projects (Nova's os-cloudpipe), and the certificates of their users."""

from flask import Response

from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.projects.project_bodies import CERTIFICATE, CLOUDPIPE, CLOUDPIPE_ADDRESS
from api.request_context import caller, compute
from climate.compute.servers.actions import By
from climate.compute.store.projects.vpn import Row
from climate.compute.vpn import cloudpipes
from climate.domain.errors import NotFound

Body = dict[str, object]

blueprint = compute_blueprint("cloudpipes")


@blueprint.get("/os-cloudpipe")
def listing() -> Body:
    """List the cloudpipes of all projects."""
    validation.may_administer()
    return {"cloudpipes": [_view(row) for row in cloudpipes.listed(compute())]}


@blueprint.post("/os-cloudpipe")
def create() -> Body:
    """Boot the cloudpipe of a project unless it exists; return the id of its server."""
    validation.may_administer()
    project_id = CLOUDPIPE.read(read_object())["project_id"]
    return {"instance_id": cloudpipes.create(compute(), project_id, _by())}


@blueprint.put("/os-cloudpipe/configure-project")
def configure() -> Response:
    """Set the address at which the cloudpipe of a project is reached; the default is the caller's project."""
    validation.may_administer()
    given = CLOUDPIPE_ADDRESS.read(read_object())
    project_id = given["project_id"] or caller().project_id
    cloudpipes.configure(compute(), project_id, str(given["vpn_ip"]), given["vpn_port"])
    return Response(status=202)


@blueprint.delete("/os-cloudpipe/<project_id>")
def delete(project_id: str) -> Response:
    """Delete the cloudpipe of a project; ?authority=true revokes all its certificates."""
    validation.may_administer()
    cloudpipes.delete(compute(), project_id, _by(), with_authority=validation.query_flag("authority"))
    return Response(status=202)


@blueprint.get("/os-cloudpipe/<project_id>/certificates")
def certificates(project_id: str) -> Body:
    """List the certificates of the caller in a project's VPN; for administrators, of all its users."""
    validation.may_read()
    certificates = cloudpipes.certificates(compute(), _own(project_id), _certificate_user())
    return {"certificates": [_certificate(row) for row in certificates]}


@blueprint.post("/os-cloudpipe/<project_id>/certificates")
def issue(project_id: str) -> tuple[Body, int]:
    """Sign a certificate for the caller; only this answer has the private key."""
    validation.may_write()
    name = CERTIFICATE.read(read_object())["name"]
    made = cloudpipes.issue(compute(), _own(project_id), name, caller().user_id)
    shown = {
        "serial": made.serial,
        "name": made.name,
        "expires_at": f"{made.expires_at:%Y-%m-%dT%H:%M:%SZ}",
        "authority": made.authority,
        "certificate": made.pair.certificate,
        "private_key": made.pair.key,
        "config": made.config,
    }
    return {"certificate": shown}, 201


@blueprint.delete("/os-cloudpipe/<project_id>/certificates/<serial>")
def revoke(project_id: str, serial: str) -> Response:
    """Revoke a certificate; the cloudpipe restarts and refuses it from then on."""
    validation.may_write()
    cloudpipes.revoke(compute(), _own(project_id), serial, _by(), _certificate_user())
    return Response(status=202)


def _own(project_id: str) -> str:
    """Return the project in a path if the caller may see its VPN."""
    if validation.own_project() not in (None, project_id):
        raise NotFound(f"Project {project_id[:80]} has no VPN.")
    return project_id


def _certificate_user() -> str | None:
    """Return the user whose certificates are listed; None: all users."""
    return None if caller().is_admin else caller().user_id


def _by() -> By:
    who = caller()
    return {"project_id": who.project_id, "user_id": who.user_id, "request_id": who.request_id}


def _view(row: Row) -> Body:
    return {
        "project_id": row["project_id"],
        "instance_id": row["server_id"],
        "internal_ip": row["internal_ip"],
        "public_ip": row["public_ip"],
        "public_port": row["public_port"],
        "state": cloudpipes.status_words(row),
        "created_at": f"{row['created_at']:%Y-%m-%dT%H:%M:%SZ}",
    }


def _certificate(row: Row) -> Body:
    times = {name: row[name] for name in ("created_at", "expires_at", "revoked_at")}
    return {name: row[name] for name in ("serial", "name", "user_id")} | {
        name: None if at is None else f"{at:%Y-%m-%dT%H:%M:%SZ}" for name, at in times.items()
    }
