"""Leases by the API of a climate that lends the hosts of an OpenStack to users of its Keystone."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real_openstack import accounts
from tests.real_openstack.conftest import SECONDS, People
from tests.system.api_client import moment
from tests.system.stack import Stack, await_so

HOUR = 3600
OWNER, STRANGER = accounts.LESSEES
SETTINGS = {
    "CLIMATE_CLOUD": "openstack",
    "CLIMATE_OPENSTACK_CLOUD": accounts.SERVICE,
    "CLIMATE_IDENTITY": "keystone",
    "CLIMATE_FAILED_AFTER": "5",
    "CLIMATE_EVACUATE_FAILED_HOSTS": "true",
    "CLIMATE_EVACUATE_AFTER": "1",
    "CLIMATE_MINUTES_BEFORE_END": "0",
    "CLIMATE_WEB_PROCESSES": "1",
    "CLIMATE_KEYSTONE_SECONDS": "60",
}
CATALOG = {"service_type": "reservation", "interface": "public", "region_name": "RegionOne"}


@dataclass(frozen=True)
class Api:
    """The API of climate for a user of Keystone, at the URL of Keystone's catalog."""

    connection: Any

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer to a request."""
        sent = {"json": body, "raise_exc": False}
        return self.connection.session.request(path, method, endpoint_filter=CATALOG, **sent)


@contextmanager
def running(people: People, home: Path, settings: Mapping[str, str]) -> Iterator[Stack]:
    """Run a climate whose hosts and users are those of the OpenStack, and enter it into the catalog."""
    path = str(accounts.clouds(people.layout))
    own = {"CLIMATE_OPENSTACK_CONFIG": path, "OS_CLIENT_CONFIG_FILE": path}
    made = Stack(home, {**SETTINGS, **own, **settings}, arguments=())
    try:
        made.start()
        admin(made, "openstack", "register", "--url", made.url, "--replace")
        yield made
    finally:
        made.stop()


def admin(stack: Stack, *words: str) -> Any:
    """Run a command of climate as the administrator, and return what it shows."""
    done = stack.run("--os-cloud", "admin", *words, "-f", "json")
    assert done.returncode == 0, f"{words}: {done.stdout} {done.stderr}"
    return json.loads(done.stdout)


def ask(api: Api, method: str, path: str, body: Any = None) -> Any:
    answer = api.ask(method, path, body)
    assert answer.status_code < 300, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer.json() if answer.content else None


def register(stack: Stack, *hosts: str) -> None:
    for host in hosts:
        admin(stack, "host", "create", host)


def order(api: Api, reservation: dict[str, Any], seconds: float = HOUR) -> dict[str, Any]:
    """Create a lease that starts now, and return it at once."""
    span = {"start_date": "now", "end_date": moment(time.time() + seconds)}
    body = {"name": f"lease-{time.monotonic_ns()}", "reservations": [reservation], "events": [], **span}
    made: dict[str, Any] = ask(api, "POST", "/leases", body)["lease"]
    return made


def lease(api: Api, reservation: dict[str, Any], seconds: float = HOUR) -> dict[str, Any]:
    """Create a lease that starts now; return it when it is active."""
    return await_lease(api, order(api, reservation, seconds)["id"], "ACTIVE")


def end(api: Api, made: Mapping[str, Any]) -> None:
    """Shorten a lease so that it ends in some seconds, and wait for its end."""
    shorten(api, made)
    await_lease(api, made["id"], "TERMINATED")


def shorten(api: Api, made: Mapping[str, Any]) -> None:
    """Let a lease end in some seconds; in more if the request comes too late for them."""
    path = f"/leases/{made['id']}"
    if api.ask("PUT", path, {"end_date": moment(time.time() + 8)}).status_code != 200:
        ask(api, "PUT", path, {"end_date": moment(time.time() + 60)})


def await_lease(api: Api, lease_id: str, status: str) -> dict[str, Any]:
    def found() -> Any:
        seen = ask(api, "GET", f"/leases/{lease_id}")["lease"]
        assert seen["status"] == status or seen["status"] != "ERROR", seen
        return seen if seen["status"] == status else None

    seen: dict[str, Any] = await_so(found, SECONDS, f"the status {status} of the lease")
    return seen


def hosts(count: int) -> dict[str, Any]:
    some = {"min": count, "max": count, "hypervisor_properties": "", "resource_properties": ""}
    return {"resource_type": "physical:host", **some}


def pools(people: People) -> dict[str, set[str]]:
    return {each.name: set(each.hosts or ()) for each in people.admin.compute.aggregates()}
