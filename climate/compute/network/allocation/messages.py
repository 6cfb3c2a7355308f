"""JSON encoding and strict decoding of allocation requests and answers."""

from collections.abc import Mapping
from dataclasses import asdict
from ipaddress import IPv4Address, IPv4Network
from typing import Any
from uuid import UUID

from climate.compute import errors
from climate.compute.network.allocation.allocator import Allocation, Interface

REFUSALS: Mapping[str, type[errors.ComputeError]] = {
    kind.__name__: kind for kind in (errors.NoMoreAddresses, errors.BadRequest, errors.Conflict, errors.NotFound)
}
"""Errors with which an allocator may refuse a request; any other error is its own failure."""

LONGEST_TEXT = 500

Answer = Mapping[str, str] | errors.ComputeError
"""Server id -> address, or the reason for a refusal."""


class WireError(Exception):
    """Message that does not follow the allocation protocol."""


def allocation_body(allocation: Allocation) -> dict[str, object]:
    """Encode a request as JSON."""
    return asdict(allocation)


def allocation_of(body: Any) -> Allocation:
    """Decode the request in a message body. Raise WireError."""
    try:
        interfaces = tuple(
            Interface(str(UUID(one["server_id"])), str(one["mac"]), _address(one.get("address")))
            for one in body["interfaces"]
        )
        ids = str(UUID(body["id"])), str(UUID(body["network_id"]))
        return Allocation(*ids, str(IPv4Network(body["cidr"])), str(body["project_id"]), interfaces, bool(body["vpn"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WireError(f"not a request for addresses: {type(error).__name__}") from None


def answer_body(allocation: Allocation, answer: Answer) -> dict[str, object]:
    """Encode an answer as JSON."""
    if not isinstance(answer, errors.ComputeError):
        return {"id": allocation.id, "addresses": dict(answer)}
    name = next((kind.__name__ for kind in type(answer).__mro__ if kind.__name__ in REFUSALS), "")
    refusal = {"type": name, "message": str(answer)[:LONGEST_TEXT], "found": getattr(answer, "found", 0)}
    return {"id": allocation.id, "refused": refusal}


def answer_of(allocation: Allocation, body: Any, *, cancelled: bool = False) -> Answer | None:
    """Decode the answer to a request; return None if it belongs to another one. Raise WireError.

    A valid answer has exactly one distinct address for each server. The answer to a `cancelled` request has none.
    """
    try:
        if body["id"] != allocation.id:
            return None
        if "refused" in body:
            return _refusal(body["refused"])
        given = {str(UUID(server)): str(IPv4Address(address)) for server, address in body["addresses"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WireError(f"not an answer: {type(error).__name__}") from None
    if cancelled:
        return {}
    if set(given) != {interface.server_id for interface in allocation.interfaces} or len(set(given.values())) < len(
        given
    ):
        raise WireError("the answer does not grant each server a distinct address")
    return given


def _refusal(body: Mapping[str, Any]) -> errors.ComputeError:
    kind, said = REFUSALS.get(str(body["type"])), str(body["message"])[:LONGEST_TEXT]
    if kind is None:
        return errors.NetworkUnavailable()
    if kind is errors.NoMoreAddresses:
        return errors.NoMoreAddresses(said, found=int(body.get("found", 0)))
    return kind(said)


def _address(given: object) -> str | None:
    return None if given is None else str(IPv4Address(given))
