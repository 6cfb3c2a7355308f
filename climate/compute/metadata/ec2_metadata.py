"""Metadata of a server as a tree of short texts, in the form of EC2 that Nova serves too."""

from collections.abc import Mapping

from climate.compute.metadata.guest_metadata import GuestMetadata

Tree = Mapping[str, "Tree | str"]

PUBLIC_KEYS = "public-keys"


def tree(own: GuestMetadata) -> Tree:
    """Return the entries below `meta-data`; those without a value are empty texts."""
    server = own.server
    fixed = [address.address for address in server.addresses]
    floating = [address.floating for address in server.addresses if address.floating]
    return {
        "ami-id": _ec2_id("ami", server.image_id or ""),
        "ami-launch-index": str(server.launch_index),
        "ami-manifest-path": "",
        "hostname": own.hostname,
        "instance-action": "none",
        "instance-id": _ec2_id("i", server.id),
        "instance-type": server.flavor.name,
        "local-hostname": own.hostname,
        "local-ipv4": next(iter(fixed), ""),
        "placement": {"availability-zone": server.node_zone or ""},
        "public-hostname": own.hostname,
        "public-ipv4": next(iter(floating), ""),
        **({} if own.key is None else {PUBLIC_KEYS: {"0": {"openssh-key": own.key[1]}}}),
        "reservation-id": server.build_id,
    }


def listing(folder: Tree, path: tuple[str, ...], own: GuestMetadata) -> str:
    """Return the names of a folder, one on each line; those of folders end in a slash.

    The folder of public keys lists the name of each key behind its number, as `0=laptop`.
    """
    if path == (PUBLIC_KEYS,) and own.key is not None:
        return f"0={own.key[0]}"
    return "\n".join(f"{name}/" if isinstance(entry, Mapping) else name for name, entry in folder.items())


def _ec2_id(kind: str, uuid: str) -> str:
    """Return an id in the form of EC2, which has no dashes inside; an empty text for no id."""
    return f"{kind}-{uuid.replace('-', '')}" if uuid else ""
