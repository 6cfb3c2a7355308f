"""Build requests of a parent zone: the accepted offer, and the build that the server belongs to."""

from collections.abc import Mapping

from api.request_context import caller, deployment
from api.schema.body import Values
from climate.compute.servers.create import new_build_id
from climate.compute.zones.builds.orders import ServerOrder
from climate.domain.errors import Forbidden, InvalidInput

BLOBS = ("blob", "zone_blob")


def is_on_offer(server: Mapping[str, object]) -> bool:
    """Return whether a server is requested on an offer of this zone; Forbidden for all but administrators."""
    if all(server[key] is None for key in BLOBS):
        return False
    if not caller().is_admin:
        raise Forbidden("Only administrators may use an offer of this zone.")
    return True


def check(server: Values, count: int, *, on_offer: bool, of_build: bool) -> None:
    """Raise InvalidInput for keys of zones in a request where they have no meaning."""
    if "num_instances" in server:
        raise InvalidInput("num_instances is only for POST /zones/boot; give min_count and max_count")
    if on_offer and count > 1:
        raise InvalidInput("max_count must be 1 with blob, which is an offer for one server")
    if "zone_build" in server and not on_offer:
        raise InvalidInput("zone_build needs the blob of an offer")
    if "reservation_id" in server and not (on_offer or of_build):
        raise InvalidInput("reservation_id is only for POST /zones/boot and for servers on an offer")


def read(server: Values, name: str) -> ServerOrder:
    """Return the build request of a parent zone."""
    build = server.get("zone_build") or {}
    return ServerOrder(
        name,
        next(server[key] for key in BLOBS if server[key] is not None),
        server.get("reservation_id") or new_build_id(deployment().compute),
        build.get("id") or "",
        build.get("launch_index", 0),
        build.get("project_id", caller().project_id),
        build.get("user_id", caller().user_id),
    )
