"""First steps of the demo: cleanup, hosts for leases, and a user of another project."""

from collections.abc import Iterable, Mapping, Sequence
from secrets import token_urlsafe
from typing import TYPE_CHECKING
from uuid import uuid4

from climate.cli.demo import cleanup
from climate.cli.demo.actors import MARK, Play, Unseen, person, require

if TYPE_CHECKING:
    from climate.cli.response_types.hosts import HostWithGpus
    from climate.cli.response_types.servers import Flavor, Node

VISITORS = f"{MARK}visitors"
"""The other project."""

GPUS = {"gpu-1": "1", "gpu-2": "2", "gpu-3": "4", "gpu-4": "4"}
"""Hosts for the reservation pool with their number of GPUs."""


def stack_answers(play: Play) -> str:
    """Everything runs"""
    cleanup.clear(play)
    said = play.stack.readiness
    checks = said.get("checks", said)
    return f"{play.stack.url} is ready ({', '.join(checks) if isinstance(checks, dict) else checks})"


def hosts_are_kept(play: Play) -> str:
    """Four hosts are kept for leases"""
    known = _hosts(play)
    for name, gpus in GPUS.items():
        if name in known:
            play.admin.call("reservation", "DELETE", f"/os-hosts/{known[name]['id']}")
        play.admin.call("reservation", "POST", "/os-hosts", json={"name": name, "gpu_count": gpus})
    listed = _hosts(play)
    play.hosts = {name: listed[name] for name in GPUS if name in listed}
    require(len(play.hosts) == len(GPUS), f"only {sorted(play.hosts)} are listed")
    for name, host in play.hosts.items():
        require(host.get("gpu_count") == GPUS[name], f"{name} has gpu_count {host.get('gpu_count')!r}")
    play.until("freepool to hold them", lambda: sorted(play.aggregates().get("freepool", ())), set(GPUS).issubset)
    seen = ", ".join(f"{name} ({host['vcpus']} CPUs, {host['gpu_count']} GPUs)" for name, host in play.hosts.items())
    return f"{seen}; all of them in freepool"


def _hosts(play: Play) -> "dict[str, HostWithGpus]":
    listed: Iterable[HostWithGpus] = play.admin.pages("reservation", "/os-hosts", "hosts")
    return {host["hypervisor_hostname"]: host for host in listed}


def sizes_are_known(play: Play) -> str:
    """There is a size of server that only those hosts can carry"""
    nodes: list[Node] = play.admin.json("compute", "GET", "/os-hypervisors/detail")["hypervisors"]
    kept = [node for node in nodes if node["hypervisor_hostname"] in play.hosts]
    others = [node for node in nodes if node["hypervisor_hostname"] not in play.hosts]
    size = {"ram": min(node["memory_mb"] for node in kept), "vcpus": min(node["vcpus"] for node in kept), "disk": 1}
    _require_none_can_carry(size, others)
    body = {"flavor": {"name": f"{MARK}large", **size}}
    play.flavor = str(play.admin.json("compute", "POST", "/flavors", json=body)["flavor"]["id"])
    flavors: list[Flavor] = play.member.json("compute", "GET", "/flavors/detail")["flavors"]
    require(play.flavor in [str(flavor["id"]) for flavor in flavors], "the new flavor is not listed")
    play.small = str(min(flavors, key=lambda flavor: (flavor["ram"], flavor["vcpus"]))["id"])
    play.image = _first_image(play)
    return f"{size['vcpus']} CPUs, {size['ram']} MB; {len(others)} other hosts are smaller"


def _require_none_can_carry(size: Mapping[str, int], nodes: "Sequence[Node]") -> None:
    could = [node for node in nodes if node["memory_mb"] >= size["ram"] and node["vcpus"] >= size["vcpus"]]
    require(not could, f"{[node['hypervisor_hostname'] for node in could]} could carry it as well")


def _first_image(play: Play) -> str:
    images = [one for one in play.member.pages("image", "/v2/images", "images") if one["status"] == "active"]
    require(bool(images), "no image exists")
    return str(images[0]["id"])


def visitor_comes(play: Play) -> str:
    """Somebody from another project can sign in"""
    name, password = f"{MARK}visitor-{uuid4().hex[:8]}", token_urlsafe(18)
    known = play.admin.json("identity", "GET", "/projects", params={"name": VISITORS})["projects"]
    project = str(known[0]["id"]) if known else _create(play, "project", {"name": VISITORS})
    user = _create(play, "user", {"name": name, "password": password, "default_project_id": project})
    roles = play.admin.json("identity", "GET", "/roles", params={"name": "member"})["roles"]
    member = next((role["id"] for role in roles if role["name"] == "member"), None)
    if member is None:
        raise Unseen("there is no role member")
    play.admin.call("identity", "PUT", f"/projects/{project}/users/{user}/roles/{member}")
    play.visitor = person(play, name, password, VISITORS)
    seen = play.visitor.token.body["project"]
    require(seen["id"] == project, f"signed in to project {seen['name']}")
    flavors = play.visitor.json("compute", "GET", "/flavors/detail")["flavors"]
    require(play.flavor in [str(flavor["id"]) for flavor in flavors], "the large size is hidden from it")
    return f"{name}, a member of project {VISITORS}, who may use that size as well"


def _create(play: Play, noun: str, wanted: Mapping[str, object]) -> str:
    return str(play.admin.json("identity", "POST", f"/{noun}s", json={noun: wanted})[noun]["id"])
