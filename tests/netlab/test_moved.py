"""Virtual machines that move between hosts while they run: they keep memory, MAC and address, and go on answering."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from climate.compute.linux import processes
from climate.compute.virt.live_migrator import Limits, LiveMigrator, MigrationCommand
from climate.compute.virt.qemu.driver import QemuDriver
from climate.compute.virt.qemu.migration_ports import PortRange
from tests.netlab.guests import packets_from, wire
from tests.netlab.servers import PATIENCE, SERVING, Placed, Site, answering

pytestmark = [pytest.mark.netlab("dnsmasq", "ping", "nft"), pytest.mark.timeout(300)]

LISTENING = PortRange.of("127.0.0.1")
LIMITS = Limits(seconds=PATIENCE)


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Site:
    return make_site("qemu")


def migrator(driver: object) -> LiveMigrator:
    assert isinstance(driver, QemuDriver)
    found = driver.live("any")
    assert found is not None
    return found


def pid(one: Placed) -> processes.Pid | None:
    assert isinstance(one.driver, QemuDriver)
    return one.driver.homes.pid(one.guest.id)


def counts(one: Placed) -> list[int]:
    """The numbers that the machine has counted on its console, one each half second, from one on at each start."""
    return [int(number) for number in re.findall(r"^machine: (\d+)\r?$", one.driver.console(one.guest, None), re.M)]


def moved(
    site: Site, one: Placed, host: str, driver: QemuDriver | None = None, offered: Mapping[str, Any] | None = None
) -> Placed:
    """The machine after it has moved, with nothing of it left where it was; `offered`: what its offer says besides."""
    card = replace(one.guest.interfaces[0], host_netns=host)
    there = replace(one, host=host, guest=replace(one.guest, interfaces=(card,)), driver=driver or one.driver)
    site.connect(there)
    arrangement = migrator(there.driver).receive(
        there.guest, {**migrator(one.driver).offer(one.guest), **(offered or {})}
    )
    sent = migrator(one.driver).send(one.guest, arrangement, LIMITS, lambda progress: MigrationCommand.GO_ON)
    migrator(there.driver).keep(there.guest, sent)
    migrator(one.driver).clear(one.guest, arrangement)
    if host != one.host:
        site.hosts[one.host].unplug(one.plug.name)
    site.placed[site.placed.index(one)] = there
    return there


def test_a_machine_goes_on_at_another_host_with_its_address(site: Site, make_site: Callable[..., Site]) -> None:
    one = site.place("c1")
    site.run(one)
    answering(one)
    light = make_site("process", beside=site)
    other = light.place("c2")
    light.run(other)
    answering(other)
    before, process = counts(one), pid(one)
    there = moved(site, one, "c2")
    assert pid(there) != process
    answering(there)
    assert other.reaches(there)
    assert packets_from("c2", there.plug.name) > 0
    assert site.driver.console(there.guest, None).count("machine: starts") == 1
    after = counts(there)
    assert after[: len(before)] == before
    assert after == list(range(1, len(after) + 1))


def test_a_machine_goes_on_in_another_folder_with_its_disk(site: Site) -> None:
    """Two compute services of one machine, each with a home of its own."""
    one = site.place("c1")
    site.run(one)
    answering(one)
    other = QemuDriver(site.folder / "other", accel="tcg", stop_seconds=60, wired=True)
    there = moved(site, one, "c2", other)
    answering(there)
    assert site.driver.states() == {}
    assert other.console(there.guest, None).count("machine: starts") == 1
    other.stop(there.guest)
    other.run(there.guest)
    answering(there)
    assert other.console(there.guest, None).count("machine: starts") == 2


def test_a_machine_goes_on_at_another_machine_and_switches_hear_of_it(site: Site) -> None:
    """Both have the interface from before it moves; the one at the destination tells its new place by itself."""
    one = site.place("c1")
    site.run(one)
    answering(one)
    other = QemuDriver(site.folder / "other", accel="tcg", stop_seconds=60, wired=True, listening=LISTENING)
    with wire(SERVING, "eth1") as heard:
        there = moved(site, one, "c2", other, {"machine": "another"})
        announced = next(frame for frame in iter(lambda: heard.recv(1 << 16), b"") if is_announcement(frame, one))
    assert announced[22:28] == bytes.fromhex(one.plug.mac.replace(":", ""))
    answering(there)
    assert site.driver.states() == {}
    assert other.console(there.guest, None).count("machine: starts") == 1
    numbers = counts(there)
    assert numbers == list(range(1, len(numbers) + 1))


def is_announcement(frame: bytes, one: Placed) -> bool:
    """Whether it is a RARP request of the machine, as QEMU sends it where a guest goes on."""
    return frame[6:12] == bytes.fromhex(one.plug.mac.replace(":", "")) and frame[12:14] == b"\x80\x35"


def test_two_nodes_on_one_host_share_the_interface(site: Site) -> None:
    """There is one tap of that name on the host: both hold it while the machine moves."""
    one = site.place("c1")
    site.run(one)
    answering(one)
    process = pid(one)
    there = moved(site, one, "c1")
    assert pid(there) != process
    answering(there)
    assert site.driver.console(there.guest, None).count("machine: starts") == 1
    site.driver.stop(there.guest)
    site.run(there)
    answering(there)


def test_one_whose_destination_lacks_the_network_stays(site: Site) -> None:
    one = site.place("c1")
    site.run(one)
    answering(one)
    process = pid(one)
    card = replace(one.guest.interfaces[0], host_netns="no-such-host")
    offer = migrator(one.driver).offer(one.guest)
    with pytest.raises(Exception, match="cannot be"):
        migrator(one.driver).receive(replace(one.guest, interfaces=(card,)), offer)
    assert list(migrator(one.driver).waiting()) == []
    assert pid(one) == process
    answering(one)
