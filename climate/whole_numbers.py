"""Whole numbers in texts of clients: decimal digits of ASCII, and no more of them than fit into the database."""

LONGEST = 18
"""Digits that fit into a bigint of the database."""


def whole_number(text: str, longest: int = LONGEST) -> int | None:
    """Return the number that a text of decimal digits gives; None for any other text, or for more digits.

    `int` accepts signs, blanks and underscores, and raises ValueError for thousands of digits; `str.isdigit` accepts
    digits such as `²`, which `int` refuses.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= longest else None
