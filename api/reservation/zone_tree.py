"""Leases over the tree of zones: requests of a parent zone are recognised by their chain of zones."""

from dataclasses import replace

from api.compute.zones import zone_chain
from api.request_context import climate
from climate.context import Climate


def over_the_tree() -> Climate:
    """Return the engine that calls child zones for this request; ZoneLoop for a request that came back to this zone."""
    zone_chain.check()
    chain = zone_chain.chain()
    engine = climate()
    return replace(engine, zones=engine.zones.through(chain.ids, chain.seconds)) if chain.ids else engine
