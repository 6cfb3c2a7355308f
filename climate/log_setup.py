"""Structured logs without secrets."""

import logging
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TextIO

import structlog
from structlog.types import EventDict, Processor, WrappedLogger

HIDDEN = "***"
SECRET_KEY = re.compile(
    r"token|secret|password|passwd|authorization|cookie|dsn|credential|private|(?:^|_|-)key", re.IGNORECASE
)
URL_PASSWORD = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(?=@)", re.IGNORECASE)
SECRET_PAIR = re.compile(
    r"(?P<name>[\"']?[\w-]*(?:token|secret|password|authorization|cookie)[\w-]*[\"']?\s*[:=]\s*)"
    r"(?:(?:basic|bearer)\s+)?(?:\"[^\"]*\"|'[^']*'|[^\s,;&}\]]+)",
    re.IGNORECASE,
)
FERNET = re.compile(r"gAAAAA[\w=-]{20,}")
TALKERS = ("httpx", "httpcore")
"""Libraries that log whole request addresses and, at DEBUG, headers, which no pattern can redact."""
CONTROL = {code: f"\\x{code:02x}" for code in (*range(9), 11, 12, *range(14, 32), 127)} | {10: "\\n", 13: "\\r"}


def configure(log_format: str = "console", level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send all logs of this process, also those of libraries, through one chain to `stream` (standard error).

    `log_format` is console or json. Values bound by `structlog.contextvars` (request id, lease id, user) appear on
    every line.
    """
    chain: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redact,
    ]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *chain, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    last = _last(log_format)
    drop = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=chain, processors=[drop, last]))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for talker in TALKERS:
        logging.getLogger(talker).setLevel(logging.WARNING)


def _last(log_format: str) -> Callable[[WrappedLogger, str, EventDict], Any]:
    if log_format == "json":
        return structlog.processors.JSONRenderer(ensure_ascii=False)
    plain: Any = structlog.dev.plain_traceback
    return structlog.dev.ConsoleRenderer(colors=False, exception_formatter=plain)


def redact(_logger: WrappedLogger, _method: str, entry: EventDict) -> EventDict:
    """Redact values that a key or a pattern marks as secret, and keep each value on one line."""
    return {key: _clean(key, value, 0) for key, value in entry.items()}


def _clean(key: str, value: object, depth: int) -> object:
    if key.startswith("_"):
        return value
    if _names_a_secret(key):
        return HIDDEN
    if isinstance(value, dict) and depth < 8:
        return {inner: _clean(str(inner), item, depth + 1) for inner, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset) and depth < 8:
        return [_clean("", item, depth + 1) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    text = without_secrets(str(value))
    return text if key == "exception" else text.translate(CONTROL)


@lru_cache(maxsize=1024)
def _names_a_secret(key: str) -> bool:
    return SECRET_KEY.search(key) is not None


def without_secrets(text: str) -> str:
    """Return `text` with passwords in URLs, tokens and `password=…` pairs redacted."""
    if "gAAAAA" in text:
        text = FERNET.sub(HIDDEN, text)
    if ":" not in text and "=" not in text:
        return text
    text = URL_PASSWORD.sub(rf"\g<scheme>{HIDDEN}", text)
    return SECRET_PAIR.sub(rf"\g<name>{HIDDEN}", text)
