"""Warnings in answers that are otherwise good: the header Warning of RFC 7234."""

import re

_MISCELLANEOUS = re.compile(r'\b199 \S+ "((?:[^"\\]|\\.)*)"')


def texts(header: str) -> list[str]:
    """Return the texts of the warnings with the code 199, which are for people."""
    return [re.sub(r"\\(.)", r"\1", text) for text in _MISCELLANEOUS.findall(header)]
