"""A management controller that speaks IPMI, whose machine follows when a test says so."""

import contextlib
import socket
import threading

from pyghmi.ipmi.bmc import Bmc

USER, PASSWORD = "admin", "correct horse"


class Machine(Bmc):
    """One machine.  All of a process are served by one thread: what they stand on is global."""

    def __init__(self, port: int) -> None:
        super().__init__({USER: PASSWORD}, port=port, address="127.0.0.1")
        self.be("off")

    def be(self, state: str) -> None:
        self.state, self.pending = state, state
        self.asked: list[str] = []

    def settle(self) -> None:
        self.state = self.pending

    def get_power_state(self) -> str:
        return self.state

    def power_on(self) -> None:
        self._ask("on", "on")

    def power_off(self) -> None:
        self._ask("hard off", "off")

    def power_shutdown(self) -> None:
        self._ask("off", "off")

    def _ask(self, verb: str, state: str) -> None:
        self.asked.append(verb)
        self.pending = state


def started() -> Machine:
    """A machine on a port of its own, served for as long as the process lives."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with contextlib.suppress(OSError):
            machine = Machine(port)
            threading.Thread(target=machine.listen, daemon=True).start()
            return machine
