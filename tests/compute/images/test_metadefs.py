"""Namespaces of metadata definitions, without the API."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from climate.compute.errors import BadRequest, Conflict, NotFound
from climate.compute.images import metadefs
from climate.compute.models.metadef import MOST, TAGS, Namespace
from climate.compute.projects import contents
from tests.compute.cloud_factory import Place


def add_tag(there: Namespace, tag: str) -> Namespace:
    return there.with_new(TAGS, tag, {})


def test_changes_at_once_both_stay(here: Place) -> None:
    metadefs.create(here.compute, Namespace("n", "owner"))
    tags = [f"t{place}" for place in range(6)]
    with ThreadPoolExecutor(6) as people:
        list(people.map(lambda tag: metadefs.change(here.compute, "n", partial(add_tag, tag=tag)), tags))
    assert sorted(metadefs.get(here.compute, "n", None).of(TAGS)) == tags


def test_a_refused_change_changes_nothing(here: Place) -> None:
    before = metadefs.create(here.compute, Namespace("n", "owner", parts={TAGS: {"t": {}}}))
    for change, error in (
        (partial(add_tag, tag="t"), Conflict),
        (lambda there: there.without(TAGS, "none"), NotFound),
        (lambda there: there.with_all(TAGS, {str(place): {} for place in range(MOST + 1)}), BadRequest),
    ):
        with pytest.raises(error):
            metadefs.change(here.compute, "n", change)
    assert metadefs.get(here.compute, "n", "owner") == before
    with pytest.raises(NotFound):
        metadefs.change(here.compute, "none", lambda there: there)


def test_namespaces_go_with_their_project(here: Place) -> None:
    metadefs.create(here.compute, Namespace("n", "owner", visibility="public"))
    metadefs.create(here.compute, Namespace("m", "other"))
    with here.compute.engine.begin() as conn:
        contents.delete_settings(conn, "owner")
    assert [one.namespace for one in metadefs.listed(here.compute, None)] == ["m"]
