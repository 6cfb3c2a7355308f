"""A whole climate in the lab: `climate up` with real networks, spoken to by its APIs, looked at from all sides."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import psycopg

from climate.compute.linux import netns
from climate.compute.network.driver import interface_name
from climate.compute.servers.interfaces.vif_plugging import netns_of
from climate.sandbox.topology import Lab
from tests.netlab import guests, leftovers
from tests.system.api_client import Api, host_lease, moment
from tests.system.stack import Stack, await_so

COMPUTE = "/compute/v2.1"
LATEST = {"OpenStack-API-Version": "compute 2.79"}
PATIENCE = 300.0
"""Seconds until something that is asked for is there."""


def _answer(by: Api, body: Mapping[str, Any]) -> httpx.Response | None:
    """The answer to a boot; None where a busy machine asks to repeat it, and has changed nothing."""
    answer = by.ask("POST", f"{COMPUTE}/servers", body, **LATEST)
    return None if answer.status_code == 503 and "Retry-After" in answer.headers else answer


@dataclass
class Region:
    """The stack, and who acts on it: `member` of the demo project, `admin` of a project of his own."""

    lab: Lab
    stack: Stack
    admin: Api
    member: Api

    def boot(
        self,
        name: str,
        who: Api | None = None,
        hints: Mapping[str, str] | None = None,
        count: int = 1,
        networks: object = "auto",
    ) -> list[str]:
        """Ask for servers of the smallest size; their ids."""
        by = who or self.member
        image = by.read("/image/v2/images")["images"][0]["id"]
        server = {"name": name, "imageRef": image, "flavorRef": "42", "networks": networks, "min_count": count}
        body: dict[str, Any] = {"server": {**server, "max_count": count, "return_reservation_id": True}}
        if hints:
            body["OS-SCH-HNT:scheduler_hints"] = dict(hints)
        answer = await_so(lambda: _answer(by, body), PATIENCE, "an answer to a boot")
        assert answer.status_code == 202, answer.text
        build = answer.json()["reservation_id"]
        listed = by.read(f"{COMPUTE}/servers?reservation_id={build}&limit=1000")["servers"]
        assert len(listed) == count
        return [one["id"] for one in listed]

    def running(self, name: str, who: Api | None = None, **wanted: Any) -> list[str]:
        """Servers that run, and have got their addresses by themselves."""
        made = self.boot(name, who, **wanted)
        for server_id in made:
            self.await_status(server_id, "ACTIVE", who)
        for server_id in made:
            await_so(lambda one=server_id: self.configured(one), PATIENCE, f"the address of {server_id}")  # type: ignore[misc]
        return made

    def sleeper(self, name: str) -> str:
        """A server that is RESERVED for an hour later, and plugged in."""
        start = time.time() + 3600
        params = json.dumps({"start": moment(start), "end": moment(start + 3600)})
        (made,) = self.boot(name, hints={"reserved": "True", "lease_params": params})
        await_so(lambda: self._is_prepared(made), PATIENCE, "the preparation of a RESERVED server")
        return made

    def _is_prepared(self, server_id: str) -> bool:
        found = self.server(server_id)
        assert found["status"] == "RESERVED", found.get("fault")
        return found["OS-EXT-STS:task_state"] is None and netns.exists(netns_of(server_id))

    def port(self, server_id: str) -> str:
        """The host's end of a server's first interface."""
        (found,) = self.member.read(f"/network/v2.0/ports?device_id={server_id}")["ports"]
        return interface_name(found["id"])

    def wake(self, server_id: str) -> None:
        """Have the lease of a RESERVED server start at once; returns when the server is ACTIVE."""
        leases = self.member.read("/v1/leases")["leases"]
        lease = next(one for one in leases if one["reservations"][0]["resource_id"] == server_id)
        answer = self.member.ask("PUT", f"/v1/leases/{lease['id']}", {"start_date": moment(time.time() + 2)})
        assert answer.status_code == 200, answer.text
        self.await_status(server_id, "ACTIVE")

    def server(self, server_id: str, who: Api | None = None) -> dict[str, Any]:
        found: dict[str, Any] = (who or self.member).read(f"{COMPUTE}/servers/{server_id}")["server"]
        return found

    def await_status(self, server_id: str, status: str, who: Api | None = None) -> None:
        def there() -> bool:
            found = self.server(server_id, who)
            assert found["status"] in (status, "BUILD", "RESERVED"), found.get("fault")
            return bool(found["status"] == status)

        await_so(there, PATIENCE, f"{status} of {server_id}")

    def delete(self, *server_ids: str, who: Api | None = None) -> None:
        """Delete servers, and wait until they are gone."""
        by = who or self.member
        for server_id in server_ids:
            assert by.ask("DELETE", f"{COMPUTE}/servers/{server_id}").status_code == 204
        for server_id in server_ids:
            path = f"{COMPUTE}/servers/{server_id}"
            await_so(lambda one=path: by.ask("GET", one).status_code == 404, PATIENCE, "a deletion")  # type: ignore[misc]

    def addresses(self, server_id: str, who: Api | None = None, kind: str = "fixed") -> list[str]:
        """What the API says that a server's addresses are."""
        found = self.server(server_id, who)["addresses"].values()
        return [one["addr"] for label in found for one in label if one["OS-EXT-IPS:type"] == kind]

    def configured(self, server_id: str) -> str:
        """What the guest itself says that its address is; nothing while it has none."""
        guest = netns_of(server_id)
        if not netns.exists(guest):
            return ""
        words = guests.run(guest, "ip", "-4", "-oneline", "address", "show", "dev", "eth0").stdout.split()
        return words[3].partition("/")[0] if len(words) > 3 else ""

    def floating(self, server_id: str) -> dict[str, Any]:
        """A floating address of the pool that stands for the member's server."""
        networks = self.member.read("/network/v2.0/networks")["networks"]
        pool = next(one["id"] for one in networks if one["router:external"])
        port = self.member.read(f"/network/v2.0/ports?device_id={server_id}")["ports"][0]["id"]
        body = {"floatingip": {"floating_network_id": pool, "port_id": port}}
        answer = self.member.ask("POST", "/network/v2.0/floatingips", body)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()["floatingip"]
        return made

    def reaches(self, server_id: str, address: str) -> bool:
        """Whether the guest reaches an address."""
        return guests.reaches(netns_of(server_id), address)

    def resolved(self, server_id: str, name: str, server: str) -> str:
        """What the DNS server of a network says that a name is, asked from inside the guest."""
        asked = guests.run(netns_of(server_id), "busybox", "nslookup", "-type=a", name, server).stdout
        return asked.rsplit("Address:", 1)[-1].split()[0]

    def reached(self, address: str, place: str | None = None) -> bool:
        """Whether an address answers soon, seen from a host: without one from outside."""
        words = ("ping", "-c", "1", "-W", "1", address)
        return guests.run(place or self.lab.outside, *words).returncode == 0

    def host_of(self, server_id: str) -> str:
        """The namespace of the node that a server is on."""
        node = self.server(server_id, self.admin)["OS-EXT-SRV-ATTR:hypervisor_hostname"]
        nodes = {"gpu-1": "c1", "gpu-2": "c2", "gpu-3": "c1", "gpu-4": "c2", "std-1": "c1", "std-2": "c2"}
        return nodes[node]

    def lease(self, name: str, hosts: int, seconds: float = 3600.0, start: float | str = "now") -> dict[str, Any]:
        """A lease of hosts of the reservation pool."""
        answer = self.member.ask("POST", "/v1/leases", host_lease(name, start, time.time() + seconds, hosts))
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()["lease"]
        return made

    def await_lease(self, lease_id: str, status: str) -> None:
        path = f"/v1/leases/{lease_id}"
        await_so(lambda: self.member.read(path)["lease"]["status"] == status, PATIENCE, f"{status} of a lease")

    def end(self, lease_id: str) -> None:
        """End a lease now, and wait until everything is taken back."""
        answer = self.member.ask("PUT", f"/v1/leases/{lease_id}", {"end_date": moment(time.time() + 2)})
        assert answer.status_code == 200, answer.text
        self.await_lease(lease_id, "TERMINATED")

    def held_addresses(self) -> int:
        """How many fixed addresses are somebody's, or wait for a lease to be over."""
        with psycopg.connect(self.stack.database_url.replace("+psycopg", ""), autocommit=True) as conn:
            row = conn.execute("SELECT count(*) FROM compute_addresses WHERE server_id IS NOT NULL").fetchone()
        return int(row[0]) if row else 0

    def await_nothing_left(self, before: frozenset[tuple[str, str, str]]) -> None:
        """Wait until the lab is as it was: no interface, namespace, process or rule more."""
        await_so(lambda: not self._left(before), PATIENCE, "clearing away: " + _told(self._left(before)))

    def _left(self, before: frozenset[tuple[str, str, str]]) -> Sequence[tuple[str, str, str]]:
        return sorted(leftovers.seen() - before)


def _told(left: Sequence[tuple[str, str, str]]) -> str:
    return "; ".join(" ".join(one) for one in left[:5])
