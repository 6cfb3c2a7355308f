"""URLs of child zones."""

import pytest

from climate.compute.errors import BadRequest
from climate.compute.zones.http import urls


@pytest.mark.parametrize(
    "url", ["http://example.com", "https://zone:8000/compute/v2.1", "http://[::1]:8000/", "http://10.0.0.1/cloud"]
)
def test_usable_urls_are_kept_as_they_are(url: str) -> None:
    assert urls.check(url) == url


@pytest.mark.parametrize(
    "url",
    [
        None,
        7,
        "",
        "zone",
        "ftp://zone",
        "file:///etc/passwd",
        "http://",
        "http://user:pass@zone/",
        "http://zone@evil/",
        "http://zone/?a=b",
        "http://zone/#x",
        "http://zone/?",
        "http://zone:99999/",
        "http://zone:0/",
        "http://zone/../admin",
        "http://zone/%2e%2e/",
        "http://zo ne/",
        "http://zone\\evil/",
        "http://zone/\r\nHost: evil",
        "http://zöne/",
        "http://" + "a" * 300,
    ],
)
def test_other_urls_are_refused(url: object) -> None:
    with pytest.raises(BadRequest):
        urls.check(url)


@pytest.mark.parametrize(
    "url", ["http://zone", "http://zone/", "http://zone/compute/v2.1", "http://zone/compute/v2.1/"]
)
def test_services_are_found_below_the_base(url: str) -> None:
    assert urls.root(url, "identity") == "http://zone/identity/v3"
    assert urls.root(url, "compute") == "http://zone/compute/v2.1"
    assert urls.root(url, "reservation") == "http://zone/reservation/v1"


@pytest.mark.parametrize("url", ["HTTP://zone", "HTTP://ZONE:80/", "http://zone:80/compute/v2.1", "http://zone/"])
def test_spellings_of_one_url_are_the_same(url: str) -> None:
    assert urls.is_same(url, "http://zone")


@pytest.mark.parametrize("url", ["https://zone", "http://zone:81", "http://zone/a", "http://zone2"])
def test_other_urls_are_not_the_same(url: str) -> None:
    assert not urls.is_same(url, "http://zone")
