"""Changes of quotas and of quota classes, as they are recorded."""

from dataclasses import replace

import pytest

from climate.compute.audit_trail import Change
from climate.compute.errors import BadRequest, QuotaExceeded
from climate.compute.projects import quotas
from tests.compute.cloud_factory import Place


def test_the_default_class_counts_at_the_next_boot(here: Place) -> None:
    quotas.change_class(here.compute, "default", {"instances": 1})
    here.boot()
    with pytest.raises(QuotaExceeded, match="already used 1 of 1"):
        here.boot()
    quotas.change(here.compute, "demo", {"instances": 2})
    here.boot()
    quotas.change(here.compute, "demo", {"instances": None})
    with pytest.raises(QuotaExceeded):
        here.boot()
    with pytest.raises(BadRequest, match="already used"):
        quotas.change(here.compute, "demo", {"instances": 1})


def test_a_change_of_a_class_is_recorded_with_what_was_set(here: Place) -> None:
    told: list[Change] = []
    compute = replace(here.compute, tell_change=lambda conn, change: told.append(change))
    assert quotas.change_class(compute, "gold", {"cores": 9})["cores"] == 9
    assert quotas.change_class(compute, "gold", {"ram_mb": -1})["instances"] == 50
    assert [(one.object_id, one.before, one.after) for one in told] == [
        ("class gold", {}, {"cores": 9}),
        ("class gold", {"cores": 9}, {"cores": 9, "ram_mb": -1}),
    ]
    assert quotas.class_limits(compute, "gold")["ram_mb"] == -1
    assert quotas.defaults(compute)["cores"] == 200
