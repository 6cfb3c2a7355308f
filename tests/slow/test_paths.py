"""What no document describes: ids in paths and texts in queries that nobody would write; never a 5xx."""

import re
from collections.abc import Callable, Iterator

import pytest

from tests.api.compute.api_clients import Person, World, world
from tests.campaign import length
from tests.slow.machines import cloud_database

pytestmark = pytest.mark.slow

PATHS = (
    *("%00", "%ff%fe", "%ED%A0%80", "%C2%B2", "%D9%A3", "%0a", "%20", "%25", "%2e%2e", "{}", "null", "a'b", "x" * 3000),
    *("0", "-1", "+1", "1_0", "1.5", "2147483648", "9223372036854775808", "00000000-0000-4000-8000-000000000000"),
)
TEXTS = (
    *("", "%20", "%ff", "%ED%A0%80", "%D9%A3", "%25", "%5B", "(", "in:,", ":", "NaN", "1e400", "0", "-1", "x" * 3000),
    *("9223372036854775808", "0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-14:00", "10.0.0.0/33"),
)
KEYS = (
    *(
        "limit",
        "marker",
        "offset",
        "sort",
        "sort_key",
        "sort_dir",
        "name",
        "id",
        "status",
        "host",
        "ip",
        "tag",
        "size_min",
    ),
    *("changes-since", "changes-before", "from", "to", "at", "start_date", "end_date", "device_id", "min_disk", "x"),
)


@pytest.fixture(scope="module")
def there(
    make_database: Callable[..., str], engine_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    with world(cloud_database(make_database, engine_template), tmp_path_factory.mktemp("home")) as found:
        yield found


def rules(there: World, *methods: str) -> list[tuple[str, str]]:
    """Method and path of all routes of the APIs but identity, which is not in this world."""
    return sorted(
        (method, rule.rule)
        for rule in there.app.url_map.iter_rules()
        if rule.rule.startswith(("/compute", "/image", "/network", "/reservation"))
        for method in (rule.methods or set()) & set(methods)
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("strange", length(PATHS[::6], PATHS), ids=lambda text: text[:20])
def test_ids_that_are_none(there: World, strange: str) -> None:
    for method, rule in rules(there, "GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"):
        for parameter in re.findall("<[^>]+>", rule):
            path = re.sub("<[^>]+>", "1", rule.replace(parameter, strange))
            answer = Person(there.app, "admin")(method, path, {} if method in ("PUT", "POST") else None)
            assert answer.status_code < 500 or answer.status_code == 501, (method, path, answer.text)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("strange", length(TEXTS[::6], TEXTS), ids=lambda text: text[:20])
def test_queries_that_are_none(there: World, strange: str) -> None:
    for _, rule in rules(there, "GET"):
        for key in KEYS:
            path = f"{re.sub('<[^>]+>', '1', rule)}?{key}={strange}&{key}=1"
            answer = Person(there.app, "admin")("GET", path)
            assert answer.status_code < 500, (path, answer.text)
