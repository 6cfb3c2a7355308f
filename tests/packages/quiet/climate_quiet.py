"""Parts of schedulers of somebody else: by degrees, by whether nodes sleep, and by whose servers are on them."""

import numpy as np

from climate.compute.models.request import Spec
from climate.compute.scheduler.filtering.scheduler import select
from climate.compute.scheduler.hosts.table import Hosts, Mask, Numbers
from climate.compute.scheduler.placement_plan import Pick, Plan, Scheduler
from climate.compute.scheduler.scheduler_parts import Again, Cost, Filter, Options, Rules, Sees, Weigher


def awake(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    return hosts.profile.where(lambda profile: not profile.stats.get("asleep"))


def warmth(hosts: Hosts, spec: Spec, options: Options) -> Numbers:
    return np.array([metrics.get("degrees", 0.0) for metrics in hosts.metrics])


def degrees(hosts: Hosts, spec: Spec) -> Numbers:
    return warmth(hosts, spec, Options())


def own(hosts: Hosts, spec: Spec) -> Numbers:
    """Servers of the project that asks."""
    assert spec.occupants is not None
    return spec.occupants.count(hosts.ids, project_id=spec.project_id)


def strangers(hosts: Hosts, spec: Spec) -> Numbers:
    """Servers of all other projects."""
    assert spec.occupants is not None
    return spec.occupants.count(hosts.ids) - own(hosts, spec)


def coolest(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
    """Put all servers on the coolest node."""
    found = degrees(hosts, spec)
    index = int(np.argmin(found))
    pick = Pick(int(hosts.ids[index]), "", "")
    return Plan((pick,) * count, {"degrees": float(found[index])})


def shy(hosts: Hosts, spec: Spec, count: int, rules: Rules) -> Plan:
    """Choose as the filter scheduler does, of the nodes with the fewest servers of strangers."""
    found = strangers(hosts, spec)
    return select(hosts.where(found == found.min()), spec, count, rules)


AWAKE = Filter("AwakeFilter", awake, why=lambda hosts, spec, options, index: "is asleep.")
COOL = Weigher("CoolWeigher", warmth, lambda options: -1.0, again=Again.NEVER)
LONELY = Filter("LonelyFilter", lambda hosts, spec, options: strangers(hosts, spec) == 0, Again.ROW, sees=Sees.ALL)
HOMELY = Weigher("HomelyWeigher", lambda hosts, spec, options: own(hosts, spec), lambda options: 9.0, sees=Sees.OWN)
STRANGERS = Cost("compute_strangers", strangers, sees=Sees.ALL)
SHY = Scheduler(shy, filters=True, sees=Sees.ALL)
