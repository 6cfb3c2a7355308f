"""Names and values of host capabilities, which requirements can name."""

from flask.typing import ResponseReturnValue

from api.openapi import Blueprint
from api.request_context import caller, climate
from api.reservation.dates import date, maybe
from api.reservation.hosts.schema import PropertiesAnswer, PropertyAnswer, PropertyChange, PropertyQuery
from api.reservation.view_decorator import PREFIX, Operation, Read, serve
from climate.service.hosts import inventory
from climate.store.hosts.hosts import HOST_TYPE, Property

blueprint = Blueprint("properties", __name__, url_prefix=PREFIX, description="Capabilities that requirements can name.")


@serve(
    blueprint,
    "GET",
    "/os-hosts/properties",
    Operation("oshosts:get_resource_properties", {200: PropertiesAnswer}, query=PropertyQuery),
)
def list_properties(query: Read) -> ResponseReturnValue:
    """List the names of capabilities, and with `detail` their values."""
    result = inventory.properties(climate(), caller(), private=query["all"])
    return {"resource_properties": [_listed(one, query["detail"]) for one in result]}


@serve(
    blueprint,
    "PATCH",
    "/os-hosts/properties/<name>",
    Operation(
        "oshosts:update_resource_properties",
        {200: PropertyAnswer},
        body=PropertyChange,
        refuses=(404,),
        example={"private": True},
    ),
)
def change_property(name: str, query: Read, body: Read) -> ResponseReturnValue:
    """Make a capability private, so that only administrators see it, or public."""
    one = inventory.set_private(climate(), caller(), name, body["private"])
    shown = {
        "id": str(one.id),
        "resource_type": HOST_TYPE,
        "property_name": one.name,
        "private": one.private,
        "created_at": date(one.created_at),
        "updated_at": maybe(date, one.updated_at),
    }
    return {"resource_property": shown}


def _listed(one: Property, detail: bool) -> dict[str, object]:
    return {"property": one.name, **({"private": one.private, "values": list(one.values)} if detail else {})}
