"""Requests of the OpenStack cloud and their answers: the same ones to a real OpenStack and to its fake.

tests/cloud/recordings.json has the answers of the real services; tests/real_openstack/record.py writes it.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climate.cloud.openstack.http import MICROVERSIONS
from climate.cloud.openstack.server_actions import MADE_OF, OCCASION
from climate.cloud.openstack.slots import class_of, inventory

RECORDINGS = Path(__file__).with_name("recordings.json")
NOBODY = "00000000-0000-4000-8000-000000000000"
OCTETS = {"Content-Type": "application/octet-stream"}

Answer = dict[str, Any]
"""Status and body."""


@dataclass(frozen=True)
class Ask:
    """Requests to one service, whose answers are kept by name."""

    found: dict[str, Answer]
    proxy: Any
    service: str

    def __call__(self, name: str, method: str, path: str, body: Any = None) -> Any:
        """Return the body of the answer; Glance refuses with a page of HTML."""
        version = MICROVERSIONS.get(self.service)
        given = {"data": body, "headers": OCTETS} if isinstance(body, bytes) else {"json": body}
        sent = self.proxy.request(path, method, **given, raise_exc=False, microversion=version)
        is_json = sent.content and "json" in sent.headers.get("Content-Type", "")
        self.found[name] = {"status": sent.status_code, "body": sent.json() if is_json else sent.text or None}
        return self.found[name]["body"]


def exchanges(connection: Any, host: str) -> dict[str, Answer]:
    """Send the requests to a cloud with that service host, and return the answers by name."""
    found: dict[str, Answer] = {}
    _compute(Ask(found, connection.compute, "compute"), host)
    hypervisors = found["hypervisor list"]["body"]["hypervisors"]
    provider = next(str(each["id"]) for each in hypervisors if each["service"]["host"] == host)
    _placement(Ask(found, connection.placement, "placement"), provider)
    _network(Ask(found, connection.network, "network"))
    _image(Ask(found, connection.image, "image"))
    return found


def _compute(ask: Ask, host: str) -> None:
    new = {"aggregate": {"name": "exchange"}}
    made = ask("aggregate create", "POST", "/os-aggregates", new)["aggregate"]
    path = f"/os-aggregates/{made['id']}"
    ask("aggregate create twice", "POST", "/os-aggregates", new)
    for name, verb, which in (
        ("aggregate add", "add_host", host),
        ("aggregate add twice", "add_host", host),
        ("aggregate add unknown", "add_host", "nowhere"),
    ):
        ask(name, "POST", f"{path}/action", {verb: {"host": which}})
    ask("aggregate metadata", "POST", f"{path}/action", {"set_metadata": {"metadata": {"a": "b", "c": None}}})
    ask("aggregate list", "GET", "/os-aggregates")
    ask("aggregate delete with host", "DELETE", path)
    for name in ("aggregate remove", "aggregate remove twice"):
        ask(name, "POST", f"{path}/action", {"remove_host": {"host": host}})
    for name in ("aggregate delete", "aggregate delete twice"):
        ask(name, "DELETE", path)
    ask("hypervisor list", "GET", "/os-hypervisors/detail")
    ask("service list", "GET", "/os-services?binary=nova-compute")
    ask("server missing", "GET", f"/servers/{NOBODY}")
    ask("server action missing", "POST", f"/servers/{NOBODY}/action", {"evacuate": {}})
    ask("flavor missing", "GET", f"/flavors/{NOBODY}")
    ask("flavor specs missing", "GET", f"/flavors/{NOBODY}/os-extra_specs")


def _placement(ask: Ask, provider: str) -> None:
    for what in ("traits", "inventories"):
        ask(f"provider {what}", "GET", f"/resource_providers/{provider}/{what}")
        ask(f"provider missing {what}", "GET", f"/resource_providers/{NOBODY}/{what}")
    _slots(ask, provider)


def _slots(ask: Ask, parent: str) -> None:
    """Send the requests by which a host gets slots of a reservation."""
    unit = class_of(NOBODY)
    for name in ("class create", "class create twice"):
        ask(name, "PUT", f"/resource_classes/{unit}")
    form = {"name": "exchange", "parent_provider_uuid": parent}
    ask("provider create", "POST", "/resource_providers", form)
    ask("provider create twice", "POST", "/resource_providers", form)
    ask("provider create nowhere", "POST", "/resource_providers", {"name": "lost", "parent_provider_uuid": NOBODY})
    (made,) = ask("provider list", "GET", "/resource_providers?name=exchange")["resource_providers"]
    ask("provider list of nothing", "GET", "/resource_providers?name=nobody")
    path = f"/resource_providers/{made['uuid']}"
    generation = made["generation"]

    def wanted(count: int, name: str = unit) -> Any:
        inventories = {name: inventory(count, 0)} if count else {}
        return {"resource_provider_generation": generation, "inventories": inventories}

    ask("slots of no class", "PUT", f"{path}/inventories", wanted(2, f"{unit}_"))
    stored = ask("slots", "PUT", f"{path}/inventories", wanted(2))
    ask("slots of an old generation", "PUT", f"{path}/inventories", wanted(3))
    generation = stored["resource_provider_generation"]
    ask("slots closed", "PUT", f"{path}/inventories", wanted(2) | {"inventories": {unit: inventory(2, 2)}})
    ask("slots usages", "GET", f"{path}/usages")
    ask("class delete in use", "DELETE", f"/resource_classes/{unit}")
    generation = ask("slots read", "GET", f"{path}/inventories")["resource_provider_generation"]
    ask("slots removed", "PUT", f"{path}/inventories", wanted(0))
    for name in ("class delete", "class delete twice"):
        ask(name, "DELETE", f"/resource_classes/{unit}")
    ask("provider delete", "DELETE", path)


def _network(ask: Ask) -> None:
    """Send requests about floating addresses; 203.0.113.0/24 is the external network of both clouds."""
    (network,) = ask("network list", "GET", "/networks?router:external=true")["networks"]
    ask("subnet list", "GET", f"/subnets?network_id={network['id']}&ip_version=4")

    def wanted(address: str, network_id: str = network["id"]) -> Any:
        mark = {"project_id": "demo", "description": "reservation:exchange"}
        return {"floatingip": {"floating_network_id": network_id, "floating_ip_address": address, **mark}}

    made = ask("floating create", "POST", "/floatingips", wanted("203.0.113.5"))["floatingip"]
    path = f"/floatingips/{made['id']}"
    ask("floating create twice", "POST", "/floatingips", wanted("203.0.113.5"))
    ask("floating create outside", "POST", "/floatingips", wanted("198.51.100.5"))
    ask("floating create nowhere", "POST", "/floatingips", wanted("203.0.113.6", NOBODY))
    ask("floating tags", "PUT", f"{path}/tags", {"tags": ["blazar", "reservation:exchange"]})
    for name, query in (
        ("tags", "tags=reservation:exchange"),
        ("other tags", "tags=reservation:other"),
        ("description", "description=reservation:exchange"),
        ("address", f"floating_network_id={network['id']}&floating_ip_address=203.0.113.5"),
    ):
        ask(f"floating list by {name}", "GET", f"/floatingips?{query}")
    ask("floating disassociate", "PUT", path, {"floatingip": {"port_id": None}})
    for name in ("floating delete", "floating delete twice"):
        ask(name, "DELETE", path)
    ask("floating tags missing", "PUT", f"{path}/tags", {"tags": []})
    ask("floating disassociate missing", "PUT", path, {"floatingip": {"port_id": None}})


def _image(ask: Ask) -> None:
    """Send requests about images of one name, with the properties of an image that climate lets Nova create."""
    form = {"name": "exchange", "disk_format": "raw", "container_format": "bare"}
    made = [
        ask(name, "POST", "/images", {**form, MADE_OF: NOBODY, OCCASION: name})["id"]
        for name in ("image create", "image create alike")
    ]
    ask("image upload", "PUT", f"/images/{made[0]}/file", b"exchange")
    ask("image list", "GET", "/images?name=exchange")
    ask("image list of nothing", "GET", "/images?name=exchange-of-nobody")
    (last,) = ask("image page", "GET", "/images?name=exchange&limit=1")["images"]
    ask("image next page", "GET", f"/images?name=exchange&marker={last['id']}")
    ask("image page after nothing", "GET", f"/images?name=exchange&marker={NOBODY}")
    for image_id in made:
        ask("image delete", "DELETE", f"/images/{image_id}")
    ask("image delete twice", "DELETE", f"/images/{made[0]}")


def recorded() -> dict[str, Answer]:
    found: dict[str, Answer] = json.loads(RECORDINGS.read_text(encoding="utf-8"))
    return found


def differences(real: Any, fake: Any, at: str = "") -> list[str]:
    """Return where an answer of the fake has what the real one has not: keys, or values of another type."""
    if isinstance(real, dict) and isinstance(fake, dict):
        extra = [f"{at}.{key}: not in the real answer" for key in fake.keys() - real.keys() if real]
        return extra + [
            each for key in fake.keys() & real.keys() for each in differences(real[key], fake[key], f"{at}.{key}")
        ]
    if isinstance(real, list) and isinstance(fake, list):
        return [each for one in fake for each in differences(real[0], one, f"{at}[]")] if real else []
    if real is None or fake is None or type(real) is type(fake):
        return []
    return [f"{at}: {type(fake).__name__} instead of {type(real).__name__}"]
