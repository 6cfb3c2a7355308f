"""Leases over the tree of zones: requests that a parent zone has sent are known by their chain."""

from dataclasses import replace

from api.compute.zones import zone_chain
from api.request_context import climate
from climate.context import Climate


def over_the_tree() -> Climate:
    """The engine, asking child zones on behalf of the request at hand; ZoneLoop for one that came back to this zone."""
    zone_chain.check()
    chain = zone_chain.chain()
    engine = climate()
    return replace(engine, zones=engine.zones.through(chain.ids, chain.seconds)) if chain.ids else engine
