"""Names that servers have in DNS."""

import re

_LONGEST = 63
_ID = 8


def hostname(name: str, server_id: str, taken: bool = False) -> str:
    """The name of a server as DNS allows it (RFC 1123): of its own name, or of its id when nothing is left of that.

    `taken`: another server of the network is called so already; then a part of the id makes it unique.
    """
    plain = re.sub(r"-{2,}", "-", re.sub(r"[^a-z0-9-]", "-", name.lower())).strip("-")
    if not plain:
        return f"server-{server_id[:_ID]}"
    if not taken:
        return plain[:_LONGEST].rstrip("-")
    return f"{plain[: _LONGEST - _ID - 1].rstrip('-')}-{server_id[:_ID]}"
