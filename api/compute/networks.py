"""Networks as compute used to show them, for clients that find no network service."""

from typing import Any

from api.compute import asked
from api.compute.blueprint import compute_blueprint
from api.compute.servers import compute
from climate.compute.store import addresses
from climate.domain.errors import NotFound

Body = dict[str, Any]

blueprint = compute_blueprint("networks")


@blueprint.get("/os-networks")
def listing() -> Body:
    """All networks."""
    return {"networks": _rows()}


@blueprint.get("/os-networks/<network_id>")
def show(network_id: str) -> Body:
    """One network, by its id; a name is nobody's."""
    for row in _rows():
        if row["id"] == network_id:
            return {"network": row}
    raise NotFound(f"Network {network_id[:80]} could not be found.")


def _rows() -> list[Body]:
    asked.may_read()
    with compute().engine.connect() as conn:
        return [{"id": row["id"], "label": row["label"], "cidr": row["cidr"]} for row in addresses.networks(conn)]
