"""Logs of tests show where an exception comes from, and no values of local variables."""

import pytest
import structlog


def test_an_exception_is_logged_without_local_variables(capsys: pytest.CaptureFixture[str]) -> None:
    values = list(range(1000, 1010))
    try:
        values.index(7)
    except ValueError:
        structlog.get_logger().exception("not found")
    said = capsys.readouterr().out
    assert "Traceback (most recent call last)" in said
    assert "ValueError" in said
    assert "1009" not in said
