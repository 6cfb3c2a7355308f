"""A server that sleeps until its lease starts."""

from marshmallow import ValidationError
from sqlalchemy import Connection

from climate.cloud import (
    ACTIVE,
    BUILD,
    ERROR,
    IMAGEABLE,
    RESERVED,
    RESIZED,
    SUSPENDED,
    CloudError,
    CloudServer,
    NotYet,
    Refused,
    Servers,
)
from climate.domain.availability.demands import Horizon
from climate.domain.errors import Conflict, NotFound
from climate.plugin import Allocation, ReservationContext, ResourceRequest
from climate.plugin.schema_fields import GIVEN_UP
from climate.store.leases import leases

ACTIONS = ("create_image", "suspend", "delete")
"""Actions at the end, in the order in which they run."""

IMAGE_PREFIX = "reserved_"


def actions(text: str) -> tuple[str, ...]:
    """Return the actions of a comma list, in their fixed order. Raise ValidationError that names an unknown one."""
    words = {word.strip() for word in text.split(",")} - {""}
    unknown = sorted(words - set(ACTIONS))
    if unknown:
        raise ValidationError(f"Unknown action {', '.join(unknown)}: known are {', '.join(ACTIONS)}")
    return tuple(action for action in ACTIONS if action in words)


class SleepingServer:
    """A server by its id: woken at the start; at the end saved as an image, suspended or deleted."""

    def check(self, cloud: Servers, request: ResourceRequest) -> None:
        if request.present is None:
            self._own(cloud, str(request.spec["resource_id"]), request.caller.project_id)

    def reserve(self, conn: Connection, request: ResourceRequest) -> Allocation:
        if request.present:
            return Allocation(
                request.present.spec, (), request.present.resource_id, request.present.exists_before_start
            )
        resource_id = str(request.spec["resource_id"])
        if leases.is_promised(conn, resource_id):
            raise Conflict(f"The server {resource_id} is in another lease already")
        on_end = actions(request.spec.get("on_end") or request.settings.on_end)
        return Allocation(spec={"on_end": ", ".join(on_end)}, resource_id=resource_id, exists_before_start=True)

    def demand(self, conn: Connection, request: ResourceRequest, horizon: Horizon) -> None:
        """Return None: a server that sleeps takes nothing of the pool."""

    def on_start(self, cloud: Servers, context: ReservationContext) -> None:
        server = self._lent(cloud, context)
        if server is None and context.reservation.spec.get(GIVEN_UP):
            return
        if server is None:
            raise Refused(f"server {context.reservation.resource_id} no longer exists")
        if server.status in (RESERVED, ACTIVE):  # the cloud may have to complete the wake of one that runs again
            cloud.wake(server.id, context.token)
            server = cloud.server(server.id) or server
        if server.status == ERROR:
            raise CloudError(f"server {server.id} is in ERROR: {server.fault or 'no reason given'}")
        if server.status in (RESERVED, BUILD):  # any other status means that its user has changed it since
            raise NotYet(f"server {server.id} is being woken up")

    def before_end(self, cloud: Servers, context: ReservationContext) -> None:
        """Do nothing: the end has its own actions."""

    def close(self, cloud: object, context: ReservationContext) -> None:
        """Do nothing: the server continues until the end."""

    def on_end(self, cloud: Servers, context: ReservationContext) -> None:
        server = self._lent(cloud, context)
        wanted = actions(str(context.reservation.spec.get("on_end") or "delete"))
        if server is None:
            return
        never_woke = server.status == RESERVED and not context.started
        to_delete = never_woke or "delete" in wanted
        if "create_image" in wanted and not never_woke:
            self._save_image(cloud, server, context)
        if "suspend" in wanted and server.status in (ACTIVE, RESIZED):
            cloud.suspend(server.id, context.token)
        if to_delete:
            cloud.delete_server(server.id, context.token)
        self._finished(cloud, context, gone=to_delete)

    def _save_image(self, cloud: Servers, server: CloudServer, context: ReservationContext) -> None:
        if server.status == RESERVED:
            # If shelved servers count as sleeping, this one was shelved by its user: wake it for the image.
            cloud.wake(server.id, context.token)
            raise NotYet(f"server {server.id} is being woken for its image")
        if server.status in IMAGEABLE:
            cloud.snapshot(server.id, f"{IMAGE_PREFIX}{server.name}", context.token)

    def _finished(self, cloud: Servers, context: ReservationContext, *, gone: bool) -> None:
        server = cloud.server(str(context.reservation.resource_id))
        if server is not None and (gone or server.busy):
            raise NotYet(f"server {server.id} is still {'being deleted' if gone else SUSPENDED.lower()}")

    def _lent(self, cloud: Servers, context: ReservationContext) -> CloudServer | None:
        """Return the server if it is the project's; servers of other projects are never changed."""
        server = cloud.server(str(context.reservation.resource_id))
        return server if server and server.project_id == context.project_id else None

    def _own(self, cloud: Servers, server_id: str, project_id: str) -> CloudServer:
        server = cloud.server(server_id)
        if server is None or server.project_id != project_id:
            raise NotFound(f"Object with {{'server_id': '{server_id}'}} not found")
        return server
