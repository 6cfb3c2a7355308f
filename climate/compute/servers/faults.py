"""What a server's owner reads of a failure: the reason, without the names of what is behind the cloud."""

import re

from climate.compute.models.server import Server


def readable(server: Server, reason: str) -> str:
    """`reason` without the names of the server's node and of its service host, which are not for everybody.

    Programs write the names of hosts in small and in large letters.
    """
    names = [re.escape(name) for name in (server.node, server.service_host) if name]
    named = rf"(?<![\w.-])(?:{'|'.join(names)})(?![\w-])"
    return re.sub(named, "(its host)", reason, flags=re.IGNORECASE) if names else reason
