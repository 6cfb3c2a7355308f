"""A client of a project's VPN: OpenVPN in a machine of its own, which knows of nothing but the world outside."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from climate.compute.linux import netns
from tests.netlab import guests
from tests.system.stack import await_so

CONNECTED = "Initialization Sequence Completed"
PATIENCE = 90.0
"""Seconds until a client that should get in is given up."""


@dataclass
class Client:
    """A running client, in a namespace, and what it has said."""

    place: str
    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def await_words(self, words: str, count: int = 1) -> None:
        """Return when it has said these words so often."""

        def heard() -> bool:
            assert self.process.poll() is None, self.said
            return self.said.count(words) >= count

        try:
            await_so(heard, PATIENCE, f"{words!r} of a VPN client")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.said[-4000:]}") from None

    def reaches(self, address: str) -> bool:
        return guests.run(self.place, "ping", "-c", "1", "-W", "5", address).returncode == 0

    def await_answer(self, address: str) -> None:
        """Return when an address has answered; on a busy machine the first packets may take long."""
        await_so(lambda: self.reaches(address), PATIENCE, f"an answer of {address} through the VPN")

    def addresses(self) -> list[str]:
        """Its addresses in the VPN."""
        words = guests.said(self.place, "ip", "-4", "-oneline", "address", "show").splitlines()
        return [line.split()[3] for line in words if line.split()[1].startswith("tun")]


@contextmanager
def client(place: str, config: str, folder: Path, name: str) -> Iterator[Client]:
    """A client with this configuration, as the API tells it."""
    file, log = folder / f"{name}.ovpn", folder / f"{name}.log"
    file.write_text(config)
    words = ("openvpn", "--config", str(file), "--connect-retry", "1", "2", "--hand-window", "8")
    with log.open("wb") as output:
        process = netns.inside(
            place, lambda: subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        )
    try:
        yield Client(place, process, log)
    finally:
        process.terminate()
        process.wait(20)
