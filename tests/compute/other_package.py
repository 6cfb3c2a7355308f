"""Servers placed by the parts of an installed package; run by test_other_package.py with that package on the path.

Arguments: the URL of a scratch database and a folder.  Prints a line for each step.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import text

from climate.compute.errors import ComputeError
from climate.compute.placement import decisions
from climate.compute.reservations import pools
from climate.configuration.scheduler import chosen
from climate.settings import SettingError, Settings
from tests.compute.cloud_factory import Place, node, place

DEGREES = {"n1": 60, "n2": 40, "n3": 50}


def under(here: Place, **settings: Any) -> Place:
    """The same cloud under other settings."""
    schedule, rules = chosen(Settings(**settings))
    return replace(here, compute=replace(here.compute, schedule=schedule, rules=rules))


def placed(here: Place, project_id: str = "demo", **wanted: Any) -> str | None:
    """The node of a new server; None when there is none."""
    return here.boot(project_id=project_id, networks=(), **wanted)[0].node


def schedulers(here: Place) -> None:
    cool = under(here, scheduler="coolest")
    pools.enrol(here.compute, "n2", 1)
    print("enrolled", placed(cool))
    pools.withdraw(here.compute, "n2", 1)
    server = cool.boot(networks=())[0]
    (told,) = decisions.of(cool.compute, server.id)
    print("coolest", server.node, told.trail["scheduler"], told.trail["degrees"])
    print("stages", [stage["name"] for stage in told.trail["filters"]], told.trail["picks"][0]["node"])
    shy = under(here, scheduler="shy", scheduler_filters="LonelyFilter", scheduler_weighers="CoolWeigher")
    print("shy", placed(shy, "other"), placed(shy, "third"))


def parts(here: Place) -> None:
    lonely = under(here, scheduler_filters="LonelyFilter")
    print("lonely", placed(lonely, "other"), placed(lonely, "fourth"))
    homely = under(here, scheduler_weighers="HomelyWeigher")
    print("homely", placed(homely, "other"), placed(homely))
    cheap = under(here, scheduler="least_cost", least_cost_functions="compute_strangers=1")
    print("cheap", placed(cheap), placed(cheap, "other"))
    with here.compute.engine.begin() as conn:
        conn.execute(text("""UPDATE compute_nodes SET stats = '{"asleep": true}' WHERE name = 'n1'"""))
    awake = under(here, scheduler="host_filter", scheduler_host_filters="AwakeHostFilter,AllHostsFilter")
    print("awake", placed(awake), placed(awake, hints={"host_filter": "AwakeHostFilter"}))
    try:
        placed(awake, hints={"host_filter": "JsonFilter"})
    except ComputeError as refused:
        print(refused)


def refusals() -> None:
    for settings in (
        {"scheduler": "no_scheduler"},
        {"scheduler": "no_module"},
        {"scheduler_host_filters": "NotAHostFilter"},
    ):
        try:
            chosen(Settings(**settings))  # type: ignore[arg-type]
        except SettingError as refused:
            print(refused)


if __name__ == "__main__":
    with place(sys.argv[1], Path(sys.argv[2]), [node(name) for name in DEGREES]) as cloud:
        with cloud.compute.engine.begin() as conn:
            for name, value in DEGREES.items():
                metrics = {"name": name, "metrics": json.dumps({"degrees": value})}
                conn.execute(text("UPDATE compute_nodes SET metrics = :metrics WHERE name = :name"), metrics)
        schedulers(cloud)
        parts(cloud)
        refusals()
