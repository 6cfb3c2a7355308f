"""What filters answer for a table of hosts."""

from typing import Any

from climate.compute.models.request import Spec
from climate.compute.scheduler.hosts.table import Hosts, Label
from climate.compute.scheduler.scheduler_parts import Filter, Options

SMALL = Spec("demo", 1, 512, 1024)
OPTIONS = Options()


def kept(rule: Filter, table: Hosts, spec: Spec = SMALL, options: Options = OPTIONS) -> list[bool]:
    """The answer for all nodes at once, which must be the answer for each of them alone."""
    answer = rule.keep(table, spec, options).tolist()
    alone = [rule.keep(table.row(at), spec, options).tolist() for at in range(len(table))]
    assert alone == [[stays] for stays in answer]
    return list(answer)


def limit(rule: Filter, table: Hosts, spec: Spec = SMALL) -> tuple[str, float]:
    assert rule.limit is not None
    return rule.limit[0], float(rule.limit[1](table, spec, OPTIONS)[0])


def labels(*metadata: dict[str, str]) -> dict[str, Any]:
    return {"labels": tuple(Label(number, f"a{number}", values) for number, values in enumerate(metadata))}
