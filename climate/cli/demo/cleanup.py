"""Cleanup of the demo, also of what an interrupted one left behind."""

from collections.abc import Iterable, Mapping

from climate.cli.demo import storage_steps
from climate.cli.demo.actors import MARK, Play


def clear(play: Play) -> None:
    """Delete everything that an interrupted demo left behind."""
    admin, member = play.admin, play.member
    servers = admin.pages("compute", "/servers/detail", "servers", {"all_tenants": "True"})
    for server_id in _ours(servers):
        admin.call("compute", "DELETE", f"/servers/{server_id}")
    for lease_id in _ours(one for one in _leases(play) if one["status"] != "DELETING"):
        admin.call("reservation", "DELETE", f"/leases/{lease_id}")
    play.until("an earlier demo to be cleared away", lambda: _left(play), lambda left: not left, 60.0)
    for host in admin.pages("reservation", "/power", "power"):
        if host["driver"] == "memory":
            admin.call("reservation", "DELETE", f"/os-hosts/{host['id']}/power", params={"force": "true"})
    storage_steps.remove(play)
    _clear_sizes_and_people(play)
    for image_id in _ours(member.pages("image", "/v2/images", "images"), f"reserved_{MARK}"):
        member.call("image", "DELETE", f"/v2/images/{image_id}")


def _clear_sizes_and_people(play: Play) -> None:
    for flavor_id in _ours(play.admin.json("compute", "GET", "/flavors/detail")["flavors"]):
        play.admin.call("compute", "DELETE", f"/flavors/{flavor_id}")
    for user_id in _ours(play.admin.json("identity", "GET", "/users")["users"]):
        play.admin.call("identity", "DELETE", f"/users/{user_id}")


def visitor_goes(play: Play) -> None:
    """The users and flavors of the demo are deleted"""
    _clear_sizes_and_people(play)


def _ours(things: Iterable[Mapping[str, object]], begins: str = MARK) -> list[str]:
    return [str(one["id"]) for one in things if str(one["name"]).startswith(begins)]


def _leases(play: Play) -> Iterable[Mapping[str, object]]:
    return play.admin.pages("reservation", "/leases", "leases")


def _left(play: Play) -> list[str]:
    servers = play.admin.pages("compute", "/servers/detail", "servers", {"all_tenants": "True"})
    left = [one for one in (*_leases(play), *servers) if str(one["name"]).startswith(MARK)]
    return [f"{one['name']} {one['status']}" for one in left]
