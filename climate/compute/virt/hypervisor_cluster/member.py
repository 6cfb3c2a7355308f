"""A member of a cluster, as the cluster sees it: what it has, whether it works, and the driver of its servers."""

from dataclasses import dataclass
from typing import Protocol

from climate.compute.clusters.cluster_spec import MemberSpec
from climate.compute.virt import Guest, VirtDriver, shared_disks

HERE = "here"
"""The machine of the cluster's own compute service."""


class Member(Protocol):
    """A member of a cluster: another driver's node."""

    @property
    def spec(self) -> MemberSpec:
        """Its name and its sizes."""

    @property
    def driver(self) -> VirtDriver:
        """Who works on its servers; the guest that is handed over names the member as its node."""

    @property
    def machine(self) -> str:
        """Where its servers and their disks are: between members of one machine nothing has to be carried."""

    @property
    def disks(self) -> str:
        """The identity of the folder of its servers' disks; equal for members that share it, empty for unknown."""

    def trouble(self) -> str | None:
        """Why it does not work now; None: it does."""

    def fence(self, guest: Guest) -> None:
        """See to it that a server does not run on this member, though it has failed; VirtError while that is unsure."""


@dataclass(frozen=True)
class LocalMember:
    """A member on the machine of the cluster's own compute service, which can end its servers itself."""

    spec: MemberSpec
    driver: VirtDriver
    machine: str = HERE

    @property
    def disks(self) -> str:
        return shared_disks.identity(self.driver)

    def trouble(self) -> str | None:
        return self.driver.trouble() or shared_disks.trouble(self.driver)

    def fence(self, guest: Guest) -> None:
        self.driver.stop(guest, kindly=False)
