"""The cloud of the compute tests, with a pool of storage and a lease that has made two volumes of it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.api.compute.api_clients import Person, World, done
from tests.api.compute.conftest import admin, member, reader, stranger, there

__all__ = ["admin", "member", "reader", "stranger", "there"]

R = "/reservation/v1"


def soon() -> str:
    """A time some hours from now, as leases spell it."""
    return f"{datetime.now(UTC) + timedelta(hours=5):%Y-%m-%d %H:%M}"


def leased(there: World, member: Person, on_end: str = "delete", name: str = "l") -> str:
    """A lease of two volumes of 1 GB each that has started; its id."""
    wanted = {"resource_type": "storage:pool", "size_gb": 2, "storage_class": "ssd", "volumes": 2, "on_end": on_end}
    body = {"name": name, "start_date": "now", "end_date": soon(), "reservations": [wanted], "events": []}
    lease = done(member("POST", f"{R}/leases", body), 201)["lease"]
    there.settle()
    assert member.get(f"{R}/leases/{lease['id']}")["lease"]["status"] == "ACTIVE"
    return str(lease["id"])


@pytest.fixture
def storage(admin: Person) -> dict[str, Any]:
    """A registered pool."""
    body = {"name": "fast", "storage_class": "ssd", "backend": "local", "capacity_gb": 4}
    found: dict[str, Any] = done(admin("POST", f"{R}/storage-pools", body), 201)["storage_pool"]
    return found
