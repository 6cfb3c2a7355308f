"""What the script of DHCP servers writes, and how it is read."""

import subprocess
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

import pytest

from climate.compute.network.driver import DhcpAction, Link
from climate.compute.network.linux.daemons.dhcp_events import AT_ONCE, Spool
from climate.compute.network.render import dnsmasq

LINK = Link("net-1", "br100", gateway=IPv4Interface("10.0.0.1/24"))


@pytest.fixture
def files(tmp_path: Path) -> dnsmasq.Files:
    made = dnsmasq.Files(tmp_path, LINK.network_id)
    made.home.mkdir()
    made.spool.mkdir()
    made.script.write_text(dnsmasq.SCRIPT)
    made.leases.write_text("1310688120 02:16:3e:33:44:55 10.0.0.3 vm1 *\n")
    return made


def called(files: dnsmasq.Files, *words: str, path: str = "/usr/bin:/bin", check: bool = True) -> str:
    environment = {"PATH": path, **dnsmasq.environment(LINK, files)}
    done = subprocess.run(
        ["/bin/sh", str(files.script), *words], env=environment, capture_output=True, text=True, check=check
    )
    return done.stdout


def test_what_clients_do_is_reported_in_order_until_it_is_forgotten(files: dnsmasq.Files) -> None:
    for action in ("add", "old", "del"):
        assert called(files, action, "02:16:3e:33:44:55", "10.0.0.3", "vm1") == ""
    spool = Spool(files.spool)
    events = spool.read()
    assert [event.what for event in events] == [DhcpAction.LEASED, DhcpAction.RENEWED, DhcpAction.RELEASED]
    assert {(event.network_id, event.mac, event.address) for event in events} == {
        ("net-1", "02:16:3e:33:44:55", IPv4Address("10.0.0.3"))
    }
    spool.forget([event.key for event in events[:2]])
    spool.forget([events[0].key, "../leases"])
    assert spool.read() == events[2:]
    assert files.leases.exists()


def test_a_server_that_starts_gets_its_leases(files: dnsmasq.Files) -> None:
    assert called(files, "init") == files.leases.read_text()


@pytest.mark.parametrize("words", [["tftp", "1", "10.0.0.3", "/f"], ["arp-add", "02:16:3e:33:44:55", "10.0.0.3"], [""]])
def test_other_actions_do_nothing(files: dnsmasq.Files, words: list[str]) -> None:
    assert called(files, *words) == ""
    assert list(files.spool.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"net-1 add 02:16:3e:33:44:55 10.0.0.3",
        b"net-1 eat 02:16:3e:33:44:55 10.0.0.3\n",
        b"net-1 add 02:16:3e:33:44 10.0.0.3\n",
        b"net-1 add 02:16:3e:33:44:55 10.0.0.300\n",
        b"net-1 add 02:16:3e:33:44:55 10.0.0.3\nnet-2 del 02:16:3e:33:44:55 10.0.0.3\n",
        b"\xff\xfe\n",
    ],
)
def test_what_cannot_be_understood_is_logged_and_dropped(
    files: dnsmasq.Files, caplog: pytest.LogCaptureFixture, text: bytes
) -> None:
    called(files, "add", "02:16:3e:33:44:55", "10.0.0.3")
    (files.spool / "0-broken").write_bytes(text)
    assert [event.what for event in Spool(files.spool).read()] == [DhcpAction.LEASED]
    assert "0-broken" in caplog.text
    assert not (files.spool / "0-broken").exists()


def test_a_script_that_breaks_off_has_reported_nothing(files: dnsmasq.Files, tmp_path: Path) -> None:
    """Here for want of the program that would give its file the name under which it is read."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "date").symlink_to("/bin/date")
    called(files, "add", "02:16:3e:33:44:55", "10.0.0.3", path=str(tmp_path / "bin"), check=False)
    assert len(list(files.spool.iterdir())) == 1
    assert Spool(files.spool).read() == []


def test_what_is_being_written_is_not_read_yet(files: dnsmasq.Files) -> None:
    (files.spool / ".17-1").write_text("net-1 add 02:16")
    assert Spool(files.spool).read() == []
    assert Spool(files.folder / "nowhere").read() == []


def test_of_very_much_the_oldest_is_reported(files: dnsmasq.Files) -> None:
    for number in range(AT_ONCE + 5):
        (files.spool / f"{number:019d}-1").write_text("net-1 add 02:16:3e:33:44:55 10.0.0.3\n")
    events = Spool(files.spool).read()
    assert (len(events), events[0].key) == (AT_ONCE, f"{0:019d}-1")


def test_only_what_was_read_goes_with_the_folder(files: dnsmasq.Files) -> None:
    (files.spool / ".draft").touch()
    (files.spool / "17-1").write_text("net-1 add 02:16:3e:33:44:55 10.0.0.3\n")
    spool = Spool(files.spool)
    spool.remove()
    assert [event.key for event in spool.read()] == ["17-1"]
    spool.forget(["17-1"])
    spool.remove()
    assert not files.spool.exists()
