"""AwakeFilter leaves out nodes that are `asleep`; CoolWeigher and compute_degrees prefer those with few degrees."""

import numpy as np

from climate.compute.request import Spec
from climate.compute.scheduler.hosts import Hosts, Mask, Numbers
from climate.compute.scheduler.rules import Again, Filter, Options, Weigher


def awake(hosts: Hosts, spec: Spec, options: Options) -> Mask:
    return hosts.profile.where(lambda profile: not profile.stats.get("asleep"))


def warmth(hosts: Hosts, spec: Spec, options: Options) -> Numbers:
    return np.array([metrics.get("degrees", 0.0) for metrics in hosts.metrics])


def degrees(hosts: Hosts, spec: Spec) -> Numbers:
    return warmth(hosts, spec, Options())


AWAKE = Filter("AwakeFilter", awake, why=lambda hosts, spec, options, place: "is asleep.")
COOL = Weigher("CoolWeigher", warmth, lambda options: -1.0, again=Again.NEVER)
