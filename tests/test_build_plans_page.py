"""The examples of docs/build-plans.md are understood by zones."""

import json
import re
from pathlib import Path
from typing import Any

from api.compute.servers.server_bodies import ZoneBuild
from api.compute.zones import build_bodies
from climate.compute.zones.builds import blobs, request_spec
from climate.configuration.scheduler import BUNDLED

PAGE = (Path(__file__).parent.parent / "docs" / "build-plans.md").read_text(encoding="utf-8")
SPEC, ORDER = (json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))


def test_request_spec_on_the_page_is_read_in_full() -> None:
    read = build_bodies.request_spec(SPEC)
    assert (read.count, read.flavor, read.image) == (4, "m1.small", "cirros")
    assert set(read.sizes.values()) == {1, 2048, 20, 0}
    assert set(SPEC["instance_type"]) == {"name", *request_spec.SIZES}


def test_order_on_the_page_has_all_keys_of_a_build() -> None:
    build: dict[str, Any] = ORDER["server"]["zone_build"]
    assert set(build) == set(ZoneBuild().keys())


def test_refusal_and_hints_on_the_page_are_those_of_the_code() -> None:
    assert str(blobs.InvalidBlob.__doc__) in PAGE
    for hint in request_spec.OF_THIS_ZONE:
        assert f"`{hint}`" in PAGE


def test_weights_of_every_scheduler_are_reported() -> None:
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(BUNDLED) <= named
