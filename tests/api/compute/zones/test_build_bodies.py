"""Body of an estimate: the request spec that it becomes."""

from typing import Any

import pytest

from api.compute.zones import build_bodies
from climate.domain.errors import InvalidInput


def test_spec_of_a_body() -> None:
    spec = build_bodies.request_spec(
        {"num_instances": 2, "instance_type": {"memory_mb": 5, "x": 1}, "filter": "f", "scheduler_hints": None}
    )
    assert (spec.count, dict(spec.sizes), dict(spec.hints), spec.flavor) == (
        2,
        {"ram_mb": 5},
        {"host_filter": "f"},
        None,
    )


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"num_instances": "2"}, "num_instances must be a whole number from 1 to 1000"),
        ({"instance_type": []}, "instance_type must be an object"),
        ({"instance_type": {"vcpus": None}}, "vcpus must be a whole number from 0"),
        ({"instance_properties": {"image_name": ""}}, "image_name must be a text of 1 to 255 characters"),
        ({"scheduler_hints": 1}, "scheduler_hints must be an object"),
        ({"blob": "b"}, "blob is for POST /servers"),
    ],
)
def test_refused_specs(body: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        build_bodies.request_spec(body)
    assert str(refused.value).startswith(says)
