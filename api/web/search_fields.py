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


def read(form: Form, now: datetime, query: SearchQuery | None = None) -> HostSearch:
    """Return the search of the fields; what the search box says goes before them."""
    query = query or SearchQuery()
    earliest = query.earliest or max(now, form_fields.moment(form, "earliest") or now)
    length = query.length or form_fields.length(form, "length", USUAL_LENGTH)
    latest = query.latest or form_fields.moment(form, "latest")
    return HostSearch(
        hosts=query.hosts or form_fields.number(form, "hosts", 1, 1, MOST_HOSTS),
        length=length,
        earliest=earliest,
        latest=latest or earliest + max(USUAL, 2 * length),
        requirements=(*query.requirements, *_requirements(form, now)),
        preemptible=form.get("preemptible") == "1",
    )


def _requirements(form: Form, now: datetime) -> tuple[Requirement, ...]:
    wanted = search_query.read(form_fields.text(form, "requirements"), now)
    if wanted != SearchQuery(requirements=wanted.requirements):
        raise InvalidInput(
            f"requirements are {form['requirements'][:80]!r}: conditions such as gpu_count>1 rack=A are expected"
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
