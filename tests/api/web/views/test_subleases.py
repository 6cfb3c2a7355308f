"""Sub-leases by a form: created without JavaScript, refused in words, and closed to everybody else."""

import re
from datetime import timedelta
from uuid import UUID

import pytest
from flask import Flask

from climate.context import Climate
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.service.subleases import listing
from tests.api.reservation.api_clients import HOST, Person
from tests.api.web.page_clients import Browser
from tests.api.web.views.test_hostile_texts import HOSTILE, Elements
from tests.conftest import MEMBER, STRANGER, Clock

Fields = dict[str, str]


@pytest.fixture
def parent(climate: Climate, clock: Clock) -> str:
    """A lease of three hosts from tomorrow on, for ten hours."""
    start = clock.time + timedelta(days=1)
    wanted = {**HOST, "min": 3, "max": 3}
    return str(
        leases.create(
            climate, MEMBER, LeaseRequest("long", start, start + timedelta(hours=10), reservations=[wanted])
        ).id
    )


@pytest.fixture
def filled(clock: Clock) -> Fields:
    """Fields of a sub-lease of an hour for another project."""
    start = clock.time + timedelta(days=1, hours=2)
    times = {"start": f"{start:%Y-%m-%dT%H:%M}", "end": f"{start + timedelta(hours=1):%Y-%m-%dT%H:%M}"}
    return {"name": "course", "project": STRANGER.project_id, "hosts": "2", **times}


def paths(parent: str) -> tuple[str, str]:
    return f"/ui/leases/{parent}", f"/ui/leases/{parent}/subleases"


def test_form_on_the_page_of_a_lease_gives_its_hosts(
    climate: Climate, parent: str, filled: Fields, member: Browser, stranger: Browser
) -> None:
    page, action = paths(parent)
    answer = member.submit(page, action, **filled)
    assert (answer.status_code, answer.location) == (303, page)
    text = member.text(page)
    assert "course gets 2 hosts of this lease." in text
    (made,) = listing.of_parent(climate, MEMBER, UUID(parent))
    assert (made.name, made.project_id, made.user_id) == ("course", STRANGER.project_id, MEMBER.user_id)
    assert f'<a href="/ui/leases/{made.id}">course</a>, 2 hosts' in text
    assert "course" in stranger.text(f"/ui/leases/{made.id}")


def test_hosts_are_given_by_name(climate: Climate, parent: str, filled: Fields, member: Browser) -> None:
    page, action = paths(parent)
    names = re.findall(r'name="host" value="(h\d)"', member.text(page))
    assert len(names) == 3
    form = member.form(page, action)
    fields = {**form.fields, **filled, "hosts": "", "host": names[:2]}
    assert member.post(action, fields).status_code == 303
    (made,) = listing.of_parent(climate, MEMBER, UUID(parent))
    assert sum(len(one.holds) for one in made.reservations) == 2


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"name": ""}, (400, "name is missing")),
        ({"project": ""}, (400, "project is missing")),
        ({"project": "no id!"}, (400, "the id of a project is expected")),
        ({"user": "<b>"}, (400, "the id of a user is expected")),
        ({"project": MEMBER.project_id}, (400, "has the hosts already")),
        ({"end": ""}, (400, "end is missing")),
        ({"end": "later"}, (400, "a time such as")),
        ({"end": "2030-01-03T09:00"}, (400, "must lie within its parent")),
        ({"hosts": ""}, (400, "hosts is missing")),
        ({"hosts": "4"}, (409, "Not enough hosts for the sub-lease: 4 wanted")),
        ({"hosts": "0"}, (400, "a whole number from 1")),
        ({"host": "h1"}, (400, "hosts is 2, but 1 are ticked")),
        ({"host": "no-host", "hosts": ""}, (400, "no-host is no host of the lease")),
        ({"reservation": "x"}, (400, "the id of a reservation of this lease")),
    ],
)
def test_refusals_are_words_above_the_filled_form(
    climate: Climate, parent: str, filled: Fields, member: Browser, changes: Fields, refusal: tuple[int, str]
) -> None:
    page, action = paths(parent)
    status, said = refusal
    answer = member.submit(page, action, **{**filled, **changes})
    assert (answer.status_code, said in answer.text) == (status, True), answer.text
    assert f'value="{filled["start"]}"' in answer.text, "what was filled in is kept"
    assert listing.of_parent(climate, MEMBER, UUID(parent)) == []


def test_texts_of_the_form_are_texts(parent: str, filled: Fields, member: Browser) -> None:
    page, action = paths(parent)
    for name in ("name", "project", "user", "start", "end", "hosts", "host", "reservation"):
        parser = Elements()
        parser.feed(member.submit(page, action, **{**filled, "hosts": "9", name: HOSTILE}).text)
        assert parser.found == [], name
    member.submit(page, action, **{**filled, "name": HOSTILE})
    parser = Elements()
    parser.feed(member.text(page))
    assert parser.found == []
    assert "alert(1)" in parser.texts


def test_only_owners_give_hosts(
    pages: Flask, parent: str, filled: Fields, member: Browser, reader: Browser, stranger: Browser
) -> None:
    page, action = paths(parent)
    secret = {"csrf_token": "secret"}
    assert "Give hosts" not in reader.text(page)
    assert reader.post(action, {**secret, **filled}).status_code == 403
    assert stranger.post(action, {**secret, **filled}).status_code == 404
    stranger.text(action, 404)
    asker = Person(pages, "member")
    asker.done(asker("PUT", f"/leases/{parent}", {"sharing": {"viewers": [STRANGER.user_id]}}))
    assert "Give hosts" not in stranger.text(page)
    assert stranger.post(action, {**secret, **filled}).status_code == 403
    stranger.text(action, 403)
    assert member.post(action, filled).status_code == 403, "the secret of the form is missing"
    assert "Give hosts" in member.text(action)


def test_leases_without_sub_leases_have_no_form(parent: str, filled: Fields, pages: Flask, member: Browser) -> None:
    page, action = paths(parent)
    member.submit(page, action, **{**filled, "project": "third-project"})
    preemptible = Person(pages, "member").lease(reservations=[{**HOST, "preemptible": True}])["id"]
    assert "Give hosts" not in member.text(f"/ui/leases/{preemptible}")
    answer = member.submit(f"/ui/leases/{preemptible}/subleases", f"/ui/leases/{preemptible}/subleases", **filled)
    assert (answer.status_code, "is preemptible" in answer.text) == (400, True)
