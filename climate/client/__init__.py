"""Python client of a climate: find a time, hold it, create and extend leases, boot servers on their hosts.

Clouds are those of clouds.yaml, as for the commands. Times are aware datetimes, and lengths are timedeltas.

    from datetime import timedelta
    from climate.client import connect, hosts

    with connect("climate-demo") as cloud:
        found = cloud.find(hosts(2), duration=timedelta(hours=6), within=timedelta(weeks=1))
        hold = cloud.hold(found.offers[0], "training")
        lease = cloud.create_lease("training", hold=hold)
        cloud.wait_for_lease(lease, progress=print)
        server = cloud.boot("node-1", flavor="m1.large", image="demo", lease=lease)
"""

from climate.client.client import Client, connect
from climate.client.errors import (
    ClientError,
    Conflict,
    InvalidRequest,
    LimitExceeded,
    NotAllowed,
    NotFound,
    TimedOut,
    Unreachable,
)
from climate.client.models import (
    Availability,
    Binding,
    Hold,
    Lease,
    Occurrence,
    Offer,
    Reservation,
    Series,
    Server,
    Waiting,
)
from climate.client.reservations import Repeat, floating_ips, hosts, servers, storage

__all__ = [
    "Availability",
    "Binding",
    "Client",
    "ClientError",
    "Conflict",
    "Hold",
    "InvalidRequest",
    "Lease",
    "LimitExceeded",
    "NotAllowed",
    "NotFound",
    "Occurrence",
    "Offer",
    "Repeat",
    "Reservation",
    "Series",
    "Server",
    "TimedOut",
    "Unreachable",
    "Waiting",
    "connect",
    "floating_ips",
    "hosts",
    "servers",
    "storage",
]
