"""The compute service's report, and what a fresh cloud is furnished with."""

from climate.compute.context import Compute
from climate.compute.flavor import DEFAULTS
from climate.compute.image import ACTIVE, Image
from climate.compute.network import addresses
from climate.compute.store import flavors, images, services

NETWORK, CIDR = "private", "10.10.0.0/20"
IMAGE_ID, IMAGE = "c11a7e00-0000-4000-8000-000000000001", "demo"


def refresh(compute: Compute) -> None:
    """Beat, and bring the node rows of this service up to what its driver reports."""
    specs = compute.driver.nodes()
    with compute.engine.begin() as conn:
        services.beat(conn, compute.service_host, compute.now(conn))
        services.report(conn, compute.service_host, specs)


def hosts(compute: Compute) -> list[str]:
    """The host names of the compute services there are, of whom nothing may have been heard for long."""
    with compute.engine.connect() as conn:
        return [service.host for service in services.listed(conn, compute.now(conn))]


def furnish(compute: Compute) -> None:
    """Give a fresh cloud flavors, an image and a network; what is there stays as it is."""
    with compute.engine.begin() as conn:
        for flavor in DEFAULTS:
            flavors.insert(conn, flavor)
        images.insert(conn, Image(IMAGE_ID, IMAGE, None, ACTIVE, "public", "raw", "bare", 0, None))
        addresses.make_network(conn, NETWORK, CIDR)
