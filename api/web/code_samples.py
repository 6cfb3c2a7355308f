"""The same request by command line, curl and Python, for people who will want to repeat it."""

import json
import shlex
from collections.abc import Mapping
from datetime import timedelta

from api.request_context import deployment
from api.web import search_query
from api.web.host_search import HostSearch

DATE = "%Y-%m-%d %H:%M"


def of_search(one: HostSearch) -> Mapping[str, str]:
    """Return a search as a command, as curl and as Python."""
    body = {
        "reservations": [dict(one.reservation)],
        "duration": int(one.length.total_seconds()),
        "earliest": one.earliest.strftime(DATE),
        "latest": one.latest.strftime(DATE),
    }
    properties = str(one.reservation["resource_properties"])
    words = ["climate", "find", "--hosts", str(one.hosts), "--for", _plain(one.length)]
    words += ["--from", one.earliest.strftime(DATE), "--within", _plain(one.latest - one.earliest)]
    words += ["--resource", properties] if properties else []
    words += ["--preemptible"] if one.preemptible else []
    return {"Command": shlex.join(words), "curl": _curl("availability", body), "Python": _python(one, properties)}


def _plain(length: timedelta) -> str:
    return search_query.words(length).replace(" ", "")


def _curl(path: str, body: Mapping[str, object]) -> str:
    url = f"{deployment().settings.base_url}/v1/{path}"
    return "\n".join(
        (
            f"curl -s {shlex.quote(url)} \\",
            '    -H "X-Auth-Token: $TOKEN" -H "Content-Type: application/json" \\',
            f"    -d {shlex.quote(json.dumps(body))}",
        )
    )


def _python(one: HostSearch, properties: str) -> str:
    """Return the search by the Python client."""
    more = [f"resources={properties!r}"] if properties else []
    more += ["preemptible=True"] if one.preemptible else []
    hosts = f"hosts({', '.join([str(one.hosts), *more])})"
    length, within = (int(time.total_seconds()) for time in (one.length, one.latest - one.earliest))
    return "\n".join(
        (
            "from datetime import datetime, timedelta",
            "from climate.client import connect, hosts",
            "",
            "with connect() as cloud:",
            "    found = cloud.find(",
            f"        {hosts},",
            f"        duration=timedelta(seconds={length}),",
            f"        earliest=datetime.fromisoformat({one.earliest.isoformat()!r}),",
            f"        within=timedelta(seconds={within}),",
            "    )",
            '    hold = cloud.hold(found.offers[0], "training")',
            '    lease = cloud.create_lease("training", hold=hold)',
        )
    )
