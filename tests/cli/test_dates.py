"""Times and spans as people write them."""

from datetime import UTC, datetime, timedelta

import pytest

from climate.cli.dates import end_of, moment, span, wire, with_zone

NOW = datetime(2026, 11, 20, 23, 30, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("45m", 2700), ("6h", 21600), ("1d12h", 129600), ("2w", 1209600), ("1h30m", 5400), ("0s", 0)],
)
def test_spans(text: str, seconds: int) -> None:
    assert span(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "6", "h", "6 h", "-6h", "6H", "1.5h", "6h6", "9999999h"])
def test_what_is_no_span(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        span(text)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("now", "2026-11-20T23:30:15Z"),
        ("+30m", "2026-11-21T00:00:15Z"),
        ("now+1d", "2026-11-21T23:30:15Z"),
        ("-15s", "2026-11-20T23:30:00Z"),
        ("today 08:00", "2026-11-20T08:00:00Z"),
        ("tomorrow", "2026-11-21T00:00:00Z"),
        ("tomorrow 8:05", "2026-11-21T08:05:00Z"),
        ("2026-12-01", "2026-12-01T00:00:00Z"),
        ("2026-12-01 10:00", "2026-12-01T10:00:00Z"),
        ("2026-12-01T10:00:30", "2026-12-01T10:00:30Z"),
        ("2026-12-01T10:00+01:00", "2026-12-01T09:00:00Z"),
        ("2026-12-01T10:00:00.500Z", "2026-12-01T10:00:00.500000Z"),
    ],
)
def test_times(text: str, when: str) -> None:
    assert wire(moment(text).when(NOW)) == when


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-13-01 10:00", "2026-02-30 10:00", "20261201", "tomorrow 25:00", "+6", "2026-W50-1",
             "0001-01-01T00:00+23:00", "1700000000"]
)  # fmt: skip
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        moment(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2026-11-20T17:45:00.000000", "2026-11-20T17:45:00Z"),
        ("2026-11-20 15:45:57.779338", "2026-11-20T15:45:57.779338Z"),
        ("2026-11-20", "2026-11-20"),
        ("2026-99-20T17:45:00", "2026-99-20T17:45:00"),
        ("gpu-1", "gpu-1"),
        (7, 7),
        (None, None),
    ],
)
def test_what_the_server_writes_is_shown_with_its_zone(value: object, text: object) -> None:
    assert with_zone(value) == text


def test_an_end_counts_from_now_and_a_length_from_the_start() -> None:
    start = NOW + timedelta(hours=1)
    assert end_of(start, moment("+3h"), None, NOW) == NOW + timedelta(hours=3)
    assert end_of(start, None, timedelta(hours=3), NOW) == start + timedelta(hours=3)
