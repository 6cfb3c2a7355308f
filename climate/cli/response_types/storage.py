"""Storage pools that can be reserved, and volumes."""

from typing import NotRequired, TypedDict

from climate.cli.response_types.hosts import Held


class StoragePool(TypedDict):
    """A storage pool; administrators see its backend."""

    id: str
    name: str
    storage_class: str
    backend: NotRequired[str]
    capacity_gb: int
    closed: bool
    created_at: str
    updated_at: str | None


class HeldStorage(Held):
    """An allocation of storage; `kept` if its lease has ended and its volumes stay."""

    size_gb: int
    kept: bool


class StorageAllocation(TypedDict):
    """A storage pool with the reservations that have a part of it."""

    resource_id: str
    name: str
    reservations: list[HeldStorage]


class VolumeAttachment(TypedDict):
    """The attachment of a volume to a server."""

    server_id: str
    device: str


class Volume(TypedDict):
    """A volume."""

    id: str
    name: str
    status: str
    size: int
    volume_type: str | None
    attachments: list[VolumeAttachment]
    metadata: dict[str, str]
