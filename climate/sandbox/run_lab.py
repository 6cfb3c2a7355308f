"""Run a command in a sandbox with a lab:
`python -m climate.sandbox.run_lab [--bridge NAME] [--listen FILE PORT] [--] COMMAND...`.

Connections to the listening socket that was opened outside as FILE are forwarded to PORT inside.
"""

import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence

from climate.sandbox import forward, topology
from climate.sandbox.enter import CANNOT
from climate.settings import environment


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Create the lab and become the command; return a status only if that fails."""
    command = list(arguments)
    try:
        topology.up(topology.described())
        if command[:1] == ["--bridge"]:
            topology.bridge(topology.described(), command[1])
            command = command[2:]
        if command[:1] == ["--listen"]:
            _forward_connections(int(command[1]), int(command[2]))
            command = command[3:]
        command = command[1:] if command[:1] == ["--"] else command
        os.execvpe(command[0], command, environ)  # noqa: S606 - there is no shell
    except (topology.LabError, OSError) as error:
        print(f"lab: {error}", file=sys.stderr)  # noqa: T201
    return CANNOT


def _forward_connections(file: int, port: int) -> None:
    """Start the process that forwards connections, as an orphan that ends with the sandbox."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os.close(file)
        return
    os.setsid()
    if os.fork() == 0:
        # It ends with the sandbox, and only with it.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        forward.serve(socket.socket(fileno=file), port)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], environment()))
