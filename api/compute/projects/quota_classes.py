"""Quota classes: the limits of the class `default` are those of projects without limits of their own."""

from collections.abc import Mapping

from api.audited import audited
from api.body import read_object
from api.compute import validation
from api.compute.blueprint import compute_blueprint
from api.compute.microversion import since
from api.compute.projects.project_bodies import QUOTA_CLASS, QUOTA_CLASS_50_TO_56, QUOTA_CLASS_57
from api.compute.projects.quotas import FILES, OF_NETWORKS, SAME_FOR_ALL, SETTABLE
from api.request_context import compute
from climate.compute.models.security_group import MOST_GROUPS, MOST_RULES
from climate.compute.projects import quotas

Body = dict[str, object]

blueprint = compute_blueprint("quota-classes")

GROUPS = {"server_groups", "server_group_members"}
"""Limits that a class has since 2.50."""

KEPT = {"security_groups": MOST_GROUPS, "security_group_rules": MOST_RULES} | SAME_FOR_ALL | FILES
"""Limits that a class keeps for its clients. They have no effect: they are the same for all projects."""


@blueprint.get("/os-quota-class-sets/<name>")
def show(name: str) -> Body:
    """Show the limits of a quota class."""
    validation.may_administer()
    limits = quotas.class_limits(compute(), validation.name(name, "the name of the class"))
    return {"quota_class_set": {"id": name, **_shown(limits)}}


@blueprint.put("/os-quota-class-sets/<name>")
def change(name: str) -> Body:
    """Update limits of a quota class."""
    validation.may_administer()
    validation.name(name, "the name of the class")
    form = QUOTA_CLASS_57 if since(57) else QUOTA_CLASS_50_TO_56 if since(50) else QUOTA_CLASS
    return {"quota_class_set": _shown(quotas.change_class(audited(), name, form.read(read_object())))}


def _shown(limits: Mapping[str, int]) -> dict[str, int]:
    """Return the limits that a class has at the microversion of the request."""
    own = SETTABLE if since(50) else {name: key for name, key in SETTABLE.items() if name not in GROUPS} | OF_NETWORKS
    groups = () if since(50) else ("security_groups", "security_group_rules")
    kept = (*groups, *SAME_FOR_ALL, *(() if since(57) else FILES))
    return {name: limits[key] for name, key in own.items()} | {name: limits.get(name, KEPT[name]) for name in kept}
