"""Fault messages for a server's owner, without the names of hosts."""

import re

from climate.compute.models.server import Server


def readable(server: Server, reason: str) -> str:
    """Return `reason` without the names of the server's node and service host, which are hidden from users.

    Programs write the names of hosts in lower and upper case.
    """
    names = [re.escape(name) for name in (server.node, server.service_host) if name]
    named = rf"(?<![\w.-])(?:{'|'.join(names)})(?![\w-])"
    return re.sub(named, "(its host)", reason, flags=re.IGNORECASE) if names else reason
