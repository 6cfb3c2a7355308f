"""Fields of a search for hosts: read from a form or an address, and written for the next one."""

from collections.abc import Mapping
from datetime import datetime

from api.web import form_fields, search_query
from api.web.form_fields import Form
from api.web.host_search import USUAL, HostSearch
from api.web.rendering import iso
from api.web.search_query import USUAL_LENGTH, Requirement, SearchQuery
from climate.domain.errors import InvalidInput

MOST_HOSTS = 10_000


def read(given: Form, now: datetime, wish: SearchQuery | None = None) -> HostSearch:
    """Return the search of the fields; what the search box says goes before them."""
    wish = wish or SearchQuery()
    earliest = wish.earliest or max(now, form_fields.moment(given, "earliest") or now)
    length = wish.length or form_fields.length(given, "length", USUAL_LENGTH)
    latest = wish.latest or form_fields.moment(given, "latest")
    return HostSearch(
        hosts=wish.hosts or form_fields.number(given, "hosts", 1, 1, MOST_HOSTS),
        length=length,
        earliest=earliest,
        latest=latest or earliest + max(USUAL, 2 * length),
        requirements=(*wish.requirements, *_requirements(given, now)),
        preemptible=given.get("preemptible") == "1",
    )


def _requirements(given: Form, now: datetime) -> tuple[Requirement, ...]:
    wanted = search_query.read(form_fields.text(given, "requirements"), now)
    if wanted != SearchQuery(requirements=wanted.requirements):
        raise InvalidInput(
            f"requirements are {given['requirements'][:80]!r}: conditions such as gpu_count>1 rack=A are expected"
        )
    return wanted.requirements


def written(one: HostSearch) -> Mapping[str, str]:
    """Return the fields from which the same search is read."""
    return {
        "hosts": str(one.hosts),
        "length": search_query.words(one.length),
        "requirements": " ".join(map(str, one.requirements)),
        "earliest": iso(one.earliest),
        "latest": iso(one.latest),
        **({"preemptible": "1"} if one.preemptible else {}),
    }
