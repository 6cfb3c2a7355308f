"""An allocator with books of its own: a file in which each network has the addresses that it has granted.

The last address of a range is granted first, which nothing of climate does.
"""

import fcntl
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import IPv4Network
from typing import Any

from climate.compute.context import Compute
from climate.compute.errors import NoMoreAddresses
from climate.compute.network.allocation.allocator import GRANT_SECONDS, Allocation, InUse, Release, Translation

KEPT = 2
"""Addresses at the beginning of a range, and one at its end, that nobody gets."""


class Ipam:
    """The books are below the home of its worker."""

    def __init__(self, compute: Compute) -> None:
        self._file = compute.home / "ipam.json"

    @contextmanager
    def _books(self) -> Iterator[dict[str, Any]]:
        """The books, which nobody else has meanwhile; written at the end."""
        with self._file.open("a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            books = json.loads(file.read() or "{}")
            yield books
            file.seek(0)
            file.truncate()
            file.write(json.dumps(books))

    def allocate_for_instance(self, asked: Allocation, /) -> Mapping[str, str]:
        with self._books() as books:
            book = books.setdefault(asked.network_id, {})
            granted = {one["server"]: address for address, one in book.items() if one["request"] == asked.id}
            free = [str(address) for address in list(IPv4Network(asked.cidr))[KEPT:-1] if str(address) not in book]
            left = [one for one in asked.interfaces if one.server_id not in granted]
            if len(free) < len(left):
                raise NoMoreAddresses(f"Nothing is left of {asked.cidr}.", found=len(granted) + len(free))
            for one in left:
                address = one.address or free.pop()
                book[address] = {"server": one.server_id, "mac": one.mac, "request": asked.id, "at": time.time()}
                granted[one.server_id] = address
            return granted

    def add_fixed_ip_to_instance(self, asked: Allocation, /) -> Mapping[str, str]:
        return self.allocate_for_instance(asked)

    def cancel_allocation(self, asked: Allocation, /) -> None:
        servers = {one.server_id for one in asked.interfaces}
        self._keep(asked.network_id, lambda _, one: one["request"] != asked.id or one["server"] not in servers)

    def deallocate_for_instance(self, released: Release, /) -> None:
        self._keep(
            released.network_id,
            lambda address, one: address not in released.addresses or one["server"] != released.server_id,
        )

    def remove_fixed_ip_from_instance(self, released: Release, /) -> None:
        self.deallocate_for_instance(released)

    def associate_floating_ip(self, change: Translation, /) -> None:
        with self._books() as books:
            books.setdefault("floating", {})[change.floating] = change.fixed

    def disassociate_floating_ip(self, change: Translation, /) -> None:
        with self._books() as books:
            books.setdefault("floating", {}).pop(change.floating, None)

    def reconcile(self, in_use: InUse, /) -> None:
        young = time.time() - GRANT_SECONDS
        self._keep(in_use.network_id, lambda address, one: address in in_use.servers or one["at"] > young)

    def _keep(self, network_id: str, wanted: Any) -> None:
        with self._books() as books:
            book = books.get(network_id, {})
            books[network_id] = {address: one for address, one in book.items() if wanted(address, one)}
