"""Rule language of oslo.policy: `role:member and project_id:%(project_id)s`.

Checks are `role:<name>`, `rule:<name>`, `project_id:`, `user_id:`, `is_admin:True`, `@` or nothing for
everybody, `!` for nobody. They are joined by `and`, `or`, `not` and parentheses.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from climate.domain.errors import ClimateError

LONGEST, DEEPEST = 4096, 32
"""Maximum characters of a rule, and maximum depth of parentheses, `not`s and references."""

TOKEN = re.compile(r"\s*(\(|\)|[^\s()]+(?:\([^\s()]*\)[^\s()]*)*)")
"""Token. A word may contain parentheses, as in `%(project_id)s`."""

KINDS = ("role", "rule", "project_id", "user_id", "is_admin")


class BadRule(ClimateError):
    """The rule is invalid."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of the requester. `roles` includes the implied ones."""

    roles: frozenset[str]
    project_id: str
    user_id: str


Check = Callable[[Credentials], bool]


@dataclass(frozen=True, slots=True)
class _Words:
    """Remaining words of a rule."""

    left: list[str]
    rules: Mapping[str, str]
    seen: tuple[str, ...]
    """Names of the rules that refer to this one."""

    def taken(self, *words: str) -> bool:
        """Consume the next word if it is one of these, and return whether it was."""
        if self.left and self.left[0].lower() in words:
            self.left.pop(0)
            return True
        return False


def compiled(text: str, rules: Mapping[str, str], seen: tuple[str, ...] = ()) -> Check:
    """Return the check for a rule; `rules` are those that it may refer to, by name.

    Raises BadRule with the cause.
    """
    if len(seen) > DEEPEST:
        raise BadRule(f"rules refer to each other more than {DEEPEST} deep")
    if len(text) > LONGEST:
        raise BadRule(f"a rule has {LONGEST} characters at most")
    words = _Words(TOKEN.findall(text), rules, seen)
    if not words.left:
        return _everybody
    check = _either(words, 0)
    if words.left:
        raise BadRule(f"{words.left[0][:64]!r} stands where 'and', 'or' or the end should")
    return check


def _either(words: _Words, depth: int) -> Check:
    checks = [_both(words, depth)]
    while words.taken("or"):
        checks.append(_both(words, depth))
    return checks[0] if len(checks) == 1 else lambda who: any(check(who) for check in checks)


def _both(words: _Words, depth: int) -> Check:
    checks = [_single(words, depth)]
    while words.taken("and"):
        checks.append(_single(words, depth))
    return checks[0] if len(checks) == 1 else lambda who: all(check(who) for check in checks)


def _single(words: _Words, depth: int) -> Check:
    if depth > DEEPEST:
        raise BadRule(f"parentheses and 'not' are nested more than {DEEPEST} deep")
    if words.taken("not"):
        inner = _single(words, depth + 1)
        return lambda who: not inner(who)
    if words.taken("("):
        check = _either(words, depth + 1)
        if not words.taken(")"):
            raise BadRule("a parenthesis is not closed")
        return check
    if not words.left or words.left[0].lower() in ("and", "or", ")"):
        raise BadRule("a check is missing beside 'and', 'or', 'not' or a parenthesis")
    return _check(words.left.pop(0), words)


def _check(word: str, words: _Words) -> Check:
    if word in ("@", "!"):
        return _everybody if word == "@" else _nobody
    kind, _, match = word.partition(":")
    if kind not in KINDS or not match:
        known = ", ".join(f"{one}:…" for one in KINDS)
        raise BadRule(f"{word[:64]!r} is not a check; known are {known}, @ and !")
    if kind == "rule":
        return _rule(match, words)
    return _credential(kind, match)


def _rule(name: str, words: _Words) -> Check:
    if name in words.seen:
        raise BadRule(f"rule:{name[:64]} refers to itself")
    if name not in words.rules:
        raise BadRule(f"there is no rule {name[:64]!r}")
    return compiled(words.rules[name], words.rules, (*words.seen, name))


def _credential(kind: str, match: str) -> Check:
    """Return a check of the requester's own credential: a target such as %(project_id)s is that of the request."""
    if kind == "role":
        return lambda who: match.lower() in who.roles
    if kind == "is_admin":
        wanted = match.lower() in ("true", "1")
        return lambda who: ("admin" in who.roles) is wanted
    if match == f"%({kind})s":
        return _everybody
    if "%(" in match:
        raise BadRule(f"{kind}:{match[:64]} must compare with %({kind})s or an id")
    return (lambda who: who.project_id == match) if kind == "project_id" else lambda who: who.user_id == match


def _everybody(who: Credentials) -> bool:
    return True


def _nobody(who: Credentials) -> bool:
    return False
