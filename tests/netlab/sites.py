"""Fixture: sites of servers in the lab, of which nothing is left in the end."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from climate.compute.network.linux.driver import LinuxNetwork
from climate.sandbox.topology import Lab
from tests.compute.virt.driver_cases import cannot
from tests.netlab.guest.build import TARGET
from tests.netlab.servers import LINK, MAKERS, Site


@pytest.fixture
def make_site(lab: Lab, tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Makes a site with guests of that kind; `beside` another one, on the same network."""
    made: list[Site] = []
    hosts = {host: LinuxNetwork(host, tmp_path / host) for host in (*lab.computes, lab.network)}

    def site(kind: str, *, dhcp: bool = True, beside: Site | None = None) -> Site:
        driver = MAKERS[kind](tmp_path)
        trouble = driver.trouble()
        if trouble is None and kind == "qemu" and not TARGET.exists():
            trouble = f"there is no machine to boot in {TARGET}: python -m tests.netlab.guest.build makes it"
        if trouble is not None:
            cannot(trouble)
        one = Site(hosts, driver, TARGET if kind == "qemu" else None, dhcp, tmp_path)
        if beside is not None:
            one.placed, one.numbers = beside.placed, beside.numbers
        made.append(one)
        return one

    yield site
    for each in made:
        for one in list(each.placed):
            each.delete(one)
    for host in hosts.values():
        host.remove(LINK.network_id)
