"""Member of a cluster: its capacity, its state, and the driver of its servers."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from climate.compute.clusters.cluster_spec import MemberSpec
from climate.compute.virt import Guest, VirtDriver, shared_storage

HERE = "here"
"""Machine of the cluster's own compute service."""


@runtime_checkable
class ConnectingDriver(Protocol):
    """Driver that connects its guests to networks by itself."""

    def disconnect(self, server_id: str) -> None:
        """Remove the interfaces of a server that has left its member. Raise VirtError."""


class Member(Protocol):
    """Member of a cluster: the node of another driver."""

    @property
    def spec(self) -> MemberSpec:
        """Return its name and its sizes."""

    @property
    def driver(self) -> VirtDriver:
        """Return the driver of its servers; guests passed to it name the member as their node."""

    @property
    def machine(self) -> str:
        """Return the machine of its servers and disks; moves within a machine copy nothing."""

    @property
    def disks(self) -> str:
        """Return the identity of the folder with its disks; equal for shared folders, empty if unknown."""

    def trouble(self) -> str | None:
        """Return why it does not work, or None if it does."""

    def fence(self, guest: Guest) -> None:
        """Ensure that a server does not run on this failed member. Raise VirtError while that is uncertain."""


@dataclass(frozen=True)
class LocalMember:
    """Member on the machine of the cluster's own compute service, which can end its servers itself."""

    spec: MemberSpec
    driver: VirtDriver
    machine: str = HERE

    @property
    def disks(self) -> str:
        return shared_storage.identity(self.driver)

    def trouble(self) -> str | None:
        return self.driver.trouble() or shared_storage.trouble(self.driver)

    def fence(self, guest: Guest) -> None:
        self.driver.stop(guest, kindly=False)
