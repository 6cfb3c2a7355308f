"""Search for hosts, as the forms and the search box ask for it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from api.request_context import caller, climate
from api.reservation.leases import reservation_specs
from api.web.search_query import Requirement
from climate.domain.availability.search import Mode
from climate.service.availability import reasons, search
from climate.service.availability.question import SearchRequest
from climate.service.availability.reasons import Reason
from climate.service.availability.search import SearchResult

USUAL = timedelta(days=7)
"""Time in which is searched, if no latest end is given."""
OFFERS, POINTS = 5, 200


@dataclass(frozen=True, slots=True)
class HostSearch:
    """A number of hosts with these properties for a time within a period."""

    hosts: int
    length: timedelta
    earliest: datetime
    latest: datetime
    requirements: Sequence[Requirement] = ()
    preemptible: bool = False
    """Set for hosts that nobody was promised, until an ordinary lease needs them."""

    @property
    def reservation(self) -> Mapping[str, object]:
        """Return the reservation as a request has it."""
        return {
            "resource_type": "physical:host",
            "min": self.hosts,
            "max": self.hosts,
            "hypervisor_properties": "",
            "resource_properties": properties(self.requirements),
            **({"preemptible": True} if self.preemptible else {}),
        }


def properties(requirements: Sequence[Requirement]) -> str:
    """Return the requirements as resource_properties."""
    trees = [[requirement.operator, f"${requirement.name}", requirement.value] for requirement in requirements]
    if not trees:
        return ""
    return json.dumps(trees[0] if len(trees) == 1 else ["and", *trees])


def search_request(one: HostSearch, offers: int = OFFERS, points: int = POINTS) -> SearchRequest:
    """Return the search as the service reads it."""
    return SearchRequest(
        reservations=[reservation_specs.read_new(climate().plugins, one.reservation)],
        length=one.length,
        earliest=one.earliest,
        latest=one.latest,
        mode=Mode.FIRST,
        offers=offers,
        points=points,
    )


def find_offers(one: HostSearch, offers: int = OFFERS, points: int = POINTS) -> tuple[SearchResult, Reason | None]:
    """Return offers and free counts, and without an offer the reason."""
    inquiry = search.prepare(climate(), caller(), search_request(one, offers, points))
    found = search.find(inquiry)
    return found, None if found.offers or not offers else reasons.explain(inquiry, found)
