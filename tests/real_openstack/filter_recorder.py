"""A scheduler filter that admits every host, and writes what a filter is given: it runs within nova-scheduler."""

# mypy: ignore-errors
# Nova is not installed beside the tests.

import json
import os
from pathlib import Path

from nova import exception
from nova.scheduler import filters

PLACE = "FILTER_RECORDS"
"""Variable with the path of the file that gets a line per host."""


class Recorder(filters.BaseHostFilter):
    """Write requests and states of hosts, with the parts that the filter of climate reads."""

    RUN_ON_REBUILD = False

    def host_passes(self, host_state, spec_obj):
        """Record both, and admit the host."""
        flavor = spec_obj.flavor
        line = {
            "host": host_state.host,
            "aggregates": sorted(map(_aggregate, host_state.aggregates), key=lambda each: each["name"]),
            "instances": {uuid: _flavor(each) for uuid, each in host_state.instances.items()},
            "project_id": spec_obj.project_id,
            "instance_uuid": spec_obj.instance_uuid,
            "hint": spec_obj.get_scheduler_hint("reservation"),
            "flavorid": flavor.flavorid,
            "extra_specs": flavor.extra_specs if "extra_specs" in flavor else None,
        }
        with Path(os.environ[PLACE]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return True


def _aggregate(aggregate):
    return {"name": aggregate.name, "metadata": dict(aggregate.metadata)}


def _flavor(instance):
    try:
        return instance.flavor.flavorid
    except (exception.InstanceNotFound, exception.OrphanedObjectError) as error:
        return type(error).__name__
