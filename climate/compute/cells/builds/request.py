"""Build in the form sent down the tree of cells: servers with names and ids, flavor and image by name."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

from sqlalchemy import Connection

from climate.compute.cells.errors import BadMessage, CellError
from climate.compute.cells.value_checks import Check, is_flag, is_size, or_none
from climate.compute.errors import BadRequest
from climate.compute.models.flavor import Flavor
from climate.compute.models.request import BootRequest, pools_of
from climate.compute.store.cells import resources
from climate.compute.store.projects import flavors, images, keypairs

TARGET_CELL = "target_cell"
"""Scheduler hint of administrators: path of the cell for the servers."""

UNSUPPORTED = ("group", "same_host", "different_host")
"""Hints that name resources of one cell, and cannot be resolved above it."""


@dataclass(frozen=True, slots=True)
class Build:
    """Servers of one request on their way to a cell."""

    build_id: str
    server_ids: tuple[str, ...]
    least: int
    project_id: str
    user_id: str
    name: str
    flavor: str
    ram_mb: int
    """Memory of the flavor at the top in MB, by which the scheduler weighs cells."""
    image: str | None = None
    image_properties: Mapping[str, object] = field(default_factory=dict)
    networks: tuple[str, ...] | None = None
    """Labels of networks; None: the cell's only one; empty: none."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Label of a network -> requested fixed address there."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    hints: Mapping[str, Any] = field(default_factory=dict)
    zone: str | None = None
    destination: str | None = None
    key_name: str | None = None
    user_data: str | None = None
    description: str | None = None
    access: tuple[str | None, str | None] = (None, None)
    admin: bool = False
    request_id: str = ""
    reserved: bool = False
    """True if the only server is RESERVED until a lease of the chosen cell starts it."""
    lease_params: object = None
    path: str = ""
    """Path from the top cell to the cell that receives it; empty at the top."""
    cell: str | None = None
    """Path of the cell with its reservation, which is the only choice; None: the scheduler chooses."""
    whole: int = 0
    """Number of servers of the whole request if these are a part of it; 0: these are all."""
    first: int = 0
    """Index of the first of them in that request, from 0."""
    config_drive: bool = False
    public_key: str | None = None
    """Public key of `key_name` at the top cell, where the user has the key pair; empty or None: no key."""

    @property
    def reservations(self) -> tuple[str, ...]:
        """Return the reservations that the servers use."""
        return pools_of(self.hints)

    def without_hint(self, hint: str) -> Self:
        """Return the build without one of its hints."""
        return replace(self, hints={key: value for key, value in self.hints.items() if key != hint})

    def to_kwargs(self) -> dict[str, object]:
        """Return the arguments of a message."""
        fields_of_it = asdict(self)
        # Cells of an earlier release do not know these fields.
        unused = [name for name, default in _LATER.items() if fields_of_it[name] == default]
        return {"build": {name: value for name, value in fields_of_it.items() if name not in unused}}


_LATER: Mapping[str, object] = {"cell": None, "whole": 0, "first": 0, "config_drive": False, "public_key": None}
"""Optional fields, sent only with a value."""
_TUPLES = ("server_ids", "networks", "access")


def _is_text(given: object) -> bool:
    return isinstance(given, str)


def _are_texts(given: object) -> bool:
    return isinstance(given, list | tuple) and all(isinstance(item, str) for item in given)


def _is_mapping(given: object) -> bool:
    return isinstance(given, dict) and _are_texts(list(given))


def _are_ids(given: object) -> bool:
    return _are_texts(given) and bool(given)


def _are_texts_by_name(given: object) -> bool:
    return isinstance(given, dict) and _are_texts([*given, *given.values()])


def _are_addresses(given: object) -> bool:
    """Return whether it is a pair of one address of IPv4 and one of IPv6, each of which may be missing."""
    match given:
        case [str() | None, str() | None]:
            return True
    return False


_CHECKS: Sequence[tuple[str, Check, Sequence[str]]] = (
    ("ids and names", _is_text, ("build_id", "project_id", "user_id", "name", "flavor", "request_id")),
    ("ids and names", _are_ids, ("server_ids",)),
    ("place in its request", is_size, ("whole", "first")),
    ("number of servers", is_size, ("least",)),
    ("memory", is_size, ("ram_mb",)),
    ("public key", or_none(_is_text), ("public_key",)),
    ("options", or_none(_is_text), ("image", "zone", "destination", "key_name", "user_data", "description", "cell")),
    ("options", is_flag, ("admin", "reserved", "config_drive")),
    ("networks", or_none(_are_texts), ("networks",)),
    ("image properties and hints", _is_mapping, ("image_properties", "hints")),
    ("metadata and addresses", _are_texts_by_name, ("metadata", "addresses")),
    ("access addresses", _are_addresses, ("access",)),
)
"""Fields of a message, each with the check of its value and the words for a refusal."""


def _check_values(given: Mapping[str, object]) -> None:
    """Raise BadMessage for a value of the wrong kind. A missing field is another error, or has its default."""
    for words, fits, names in _CHECKS:
        if not all(fits(given[name]) for name in names if name in given):
            raise BadMessage(f"The build has no usable {words}")


def read(kwargs: Mapping[str, object]) -> Build:
    """Return the build in the arguments of a message. Raise BadMessage if there is none."""
    given = kwargs.get("build")
    if not isinstance(given, dict) or not {one.name for one in fields(Build)}.issuperset(given):
        raise BadMessage("The build is malformed")
    _check_values(given)
    tuples = {name: tuple(given[name]) for name in _TUPLES if given.get(name) is not None}
    try:
        return Build(**{**given, **tuples})
    except TypeError:
        raise BadMessage("The build is incomplete") from None


def build_of(conn: Connection, request: BootRequest, build_id: str, server_ids: Sequence[str]) -> Build:
    """Return the build of a request at the top cell.

    Raise BadRequest for hints and networks that cannot be resolved there.
    """
    if wrong := [hint for hint in UNSUPPORTED if request.hints.get(hint) is not None]:
        raise BadRequest(f"The hint {wrong[0]!r} cannot be used with cells: leave it out, or boot in one cell.")
    image = images.get(conn, request.image_id) if request.image_id else None
    labels = resources.labels(conn, [*(request.networks or ()), *request.addresses])
    return Build(
        build_id,
        tuple(server_ids),
        request.least,
        request.project_id,
        request.user_id,
        request.name,
        request.flavor.name,
        request.flavor.ram_mb,
        image.name if image is not None else None,
        image.properties if image is not None else {},
        None if request.networks is None else tuple(_label(labels, network) for network in request.networks),
        {_label(labels, network): address for network, address in request.addresses.items()},
        request.metadata,
        request.hints,
        request.zone,
        request.destination,
        request.key_name,
        request.user_data,
        request.description,
        request.access,
        request.admin,
        request.request_id,
        config_drive=request.config_drive,
        public_key=keypairs.public_key(conn, request.user_id, request.key_name) if request.key_name else None,
    )


def boot_request(conn: Connection, build: Build) -> BootRequest:
    """Return the request for the servers of a build in this cell.

    Raise CellError for a flavor, image or network that is not here.
    """
    networks = _networks(conn, build)
    return BootRequest(
        project_id=build.project_id,
        user_id=build.user_id,
        name=build.name,
        flavor=_flavor(conn, build),
        image_id=_image(conn, build),
        networks=None if build.networks is None else tuple(networks[label] for label in build.networks),
        addresses={networks[label]: address for label, address in build.addresses.items()},
        metadata=build.metadata,
        hints=build.hints,
        zone=build.zone,
        destination=build.destination,
        key_name=build.key_name,
        user_data=build.user_data,
        config_drive=build.config_drive,
        public_key=build.public_key or "",
        description=build.description,
        access=build.access,
        count=len(build.server_ids),
        least=build.least,
        admin=build.admin,
        request_id=build.request_id,
        whole=build.whole,
        first=build.first,
    )


def _flavor(conn: Connection, build: Build) -> Flavor:
    result = next((flavor for flavor in flavors.listed(conn) if flavor.name == build.flavor), None)
    if result is None or not (result.usable_by(build.project_id) or build.admin):
        raise CellError(f"The cell has no flavor {build.flavor!r}.")
    return result


def _image(conn: Connection, build: Build) -> str | None:
    if build.image is None:
        return None
    result = resources.images_named(conn, build.image, build.project_id)
    if not result:
        raise CellError(f"The cell has no image {build.image!r}.")
    if len(result) > 1:
        raise CellError(f"The cell has several images {build.image!r}; give each its own name.")
    return result[0]


def _networks(conn: Connection, build: Build) -> dict[str, str]:
    wanted = [*(build.networks or ()), *build.addresses]
    result = resources.labelled(conn, wanted)
    if missing := [label for label in wanted if label not in result]:
        raise CellError(f"The cell has no network {missing[0]!r}.")
    return result


def _label(labels: Mapping[str, str], network_id: str) -> str:
    if network_id not in labels:
        raise BadRequest(f"Network {network_id} could not be found.")
    return labels[network_id]
