"""The catalog of a Keystone, as its Identity API lists it."""

from typing import NotRequired, TypedDict


class Region(TypedDict):
    """A region."""

    id: str


class Service(TypedDict, total=False):
    """A service; a new one has no id before it is stored."""

    id: str
    name: str
    type: str
    description: str
    enabled: bool


class ServiceEndpoint(TypedDict):
    """A URL of a service."""

    id: str
    service_id: str
    region_id: str | None
    interface: str
    url: str
    enabled: NotRequired[bool]
