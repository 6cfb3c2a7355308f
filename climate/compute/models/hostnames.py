"""DNS names of servers."""

import re

_LONGEST = 63
_ID = 8


def hostname(name: str, server_id: str, taken: bool = False) -> str:
    """Return the DNS label of a server (RFC 1123), from its name, or from its id if no valid character remains.

    `taken`: another server of the network has this label; then a part of the id makes it unique.
    """
    plain = re.sub(r"-{2,}", "-", re.sub(r"[^a-z0-9-]", "-", name.lower())).strip("-")
    if not plain:
        return f"server-{server_id[:_ID]}"
    if not taken:
        return plain[:_LONGEST].rstrip("-")
    return f"{plain[: _LONGEST - _ID - 1].rstrip('-')}-{server_id[:_ID]}"
