"""Builds as messages of cells: read back as they were, and refused with words where a value is of the wrong kind."""

import json
from typing import Any

import pytest

from climate.compute.cells.builds import request
from climate.compute.cells.builds.request import Build
from climate.compute.cells.errors import BadMessage

PLAIN = Build("r-1", ("id",), 1, "demo", "dora", "s", "tiny", 512)
FULL = Build(
    "r-1",
    ("id-1", "id-2"),
    1,
    "demo",
    "dora",
    "s",
    "tiny",
    512,
    image="debian",
    image_properties={"hw_disk_bus": "virtio"},
    networks=("private",),
    addresses={"private": "10.0.0.5"},
    metadata={"a": "b"},
    hints={"reservation": "r"},
    access=("192.0.2.1", None),
    admin=True,
    whole=3,
    first=1,
    public_key="",
)


def sent(build: Build, **changes: Any) -> dict[str, Any]:
    """The arguments of a message as they arrive, with changed fields."""
    kwargs = json.loads(json.dumps(build.to_kwargs()))
    return {"build": kwargs["build"] | changes}


@pytest.mark.parametrize("build", [PLAIN, FULL])
def test_a_build_is_read_as_it_was_sent(build: Build) -> None:
    assert request.read(sent(build)) == build


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("build_id", 5, "ids and names"),
        ("request_id", None, "ids and names"),
        ("server_ids", [], "ids and names"),
        ("server_ids", [5], "ids and names"),
        ("least", "1", "number of servers"),
        ("ram_mb", -1, "memory"),
        ("whole", True, "place in its request"),
        ("image", ["debian"], "options"),
        ("admin", "yes", "options"),
        ("networks", "private", "networks"),
        ("networks", [None], "networks"),
        ("hints", [], "image properties and hints"),
        ("metadata", {"a": 1}, "metadata and addresses"),
        ("addresses", "10.0.0.5", "metadata and addresses"),
        ("access", 5, "access addresses"),
        ("access", None, "access addresses"),
        ("access", ["192.0.2.1"], "access addresses"),
        ("access", [5, None], "access addresses"),
        ("public_key", 5, "public key"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(name: str, value: object, words: str) -> None:
    with pytest.raises(BadMessage, match=f"no usable {words}"):
        request.read(sent(FULL, **{name: value}))


@pytest.mark.parametrize("kwargs", [{}, {"build": []}, {"build": {"color": "red"}}, {"build": {"build_id": "r-1"}}])
def test_what_is_no_build_is_refused(kwargs: dict[str, Any]) -> None:
    with pytest.raises(BadMessage, match=r"malformed|incomplete"):
        request.read(kwargs)
