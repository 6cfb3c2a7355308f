"""Build plans: offers of nodes and child zones for the servers of a request, best first.

Lower weights are better. A child's weights are converted to the parent's scale by its registered offset and scale.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from climate.compute.zones.builds.blobs import LONGEST, InvalidBlob
from climate.compute.zones.models import ChildZone

LARGEST = sys.float_info.max
"""Maximum weight of a child's offer; NaN, infinities and larger numbers are refused."""


@dataclass(frozen=True, slots=True)
class LocalItem:
    """Offer of a node of this zone for one server."""

    weight: float
    hostname: str
    """Host of the compute service."""
    nodename: str


@dataclass(frozen=True, slots=True)
class ChildItem:
    """Offer of a child zone for one server; only that child can read its blob."""

    weight: float
    raw_weight: float
    """Weight in the child's answer."""
    child_zone: int
    """Id of the child's row in this zone."""
    child_blob: str = field(repr=False)


PlanItem = LocalItem | ChildItem


@dataclass(frozen=True, slots=True)
class Offer:
    """Entry of a child's answer."""

    weight: float
    blob: str = field(repr=False)


class BadOffers(ValueError):
    """Raised if a child's answer is not a list of weights and blobs."""


def offers(body: object, most: int) -> list[Offer]:
    """Return the first `most` offers of a child's answer. Raise BadOffers with the error."""
    entries = body.get("weights") if isinstance(body, dict) else None
    if not isinstance(entries, list):
        raise BadOffers("has no list 'weights'")
    return [_offer(entry) for entry in entries[:most]]


def _offer(entry: object) -> Offer:
    weight = entry.get("weight") if isinstance(entry, dict) else None
    blob = entry.get("blob") if isinstance(entry, dict) else None
    if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not -LARGEST <= weight <= LARGEST:
        raise BadOffers("has a weight that is not a number")
    if not isinstance(blob, str) or not 0 < len(blob) <= LONGEST:
        raise BadOffers("has a blob that is not a text of a usable length")
    return Offer(float(weight), blob)


def scaled(zone: ChildZone, offered: Sequence[Offer]) -> list[ChildItem]:
    """Return a child's offers on this zone's scale: `weight_offset + weight_scale * weight`.

    Raise BadOffers for a weight that overflows.
    """
    items = [
        ChildItem(zone.weight_offset + zone.weight_scale * offer.weight, offer.weight, zone.id, offer.blob)
        for offer in offered
    ]
    if not all(math.isfinite(item.weight) for item in items):
        raise BadOffers("has a weight that is too large for weight_scale")
    return items


def merged(local: Sequence[LocalItem], children: Sequence[Sequence[ChildItem]]) -> tuple[PlanItem, ...]:
    """Return one plan, lowest weight first; of equals, local ones first, then the children in order."""
    return tuple(sorted(chain(local, *children), key=lambda item: item.weight))


def written(item: PlanItem) -> dict[str, object]:
    """Return the item as plain values for a blob."""
    if isinstance(item, LocalItem):
        return {"weight": item.weight, "hostname": item.hostname, "nodename": item.nodename}
    return {"weight": item.weight, "child_zone": item.child_zone, "child_blob": item.child_blob}


def read(content: Mapping[str, Any]) -> PlanItem:
    """Return the item of a blob. Raise InvalidBlob if it names neither a node nor a child."""
    weight = content.get("weight", 0.0)
    if isinstance(content.get("child_zone"), int) and isinstance(content.get("child_blob"), str):
        return ChildItem(weight, weight, content["child_zone"], content["child_blob"])
    if isinstance(content.get("hostname"), str) and isinstance(content.get("nodename"), str):
        return LocalItem(weight, content["hostname"], content["nodename"])
    raise InvalidBlob("it names neither a node nor a child zone")
