"""Messages for a path without a route, and for a method that a route does not have."""

from collections.abc import Mapping
from difflib import SequenceMatcher

from werkzeug.routing import Map

from api.path_aliases import RESERVATION, V1

LONGEST_PATH = 200
"""Characters of a path for which a near one is looked for."""
LIKE = 0.7
"""Least similarity of each word of a suggested path, from 0 to 1."""
PAGES = "/ui/"
"""Beginning of the paths of web pages, which are no answer to a request to an API."""
DOCUMENTS = "/openapi.json, /compute/openapi.json and /network/openapi.json list the paths"

Parts = list[str]


def no_path(asked: str, path: str, routes: Map) -> str:
    """Return the message for a path without a route; `asked` is the path before its aliases were resolved."""
    near = _nearest(path, routes) if len(path) <= LONGEST_PATH else None
    if near is not None and not asked.startswith(RESERVATION) and near.startswith(V1) and path.startswith(V1):
        near = near.removeprefix(RESERVATION)
    hint = f"did you mean {near}? " if near else ""
    return f"There is no path {_short(asked)}: {hint}{DOCUMENTS}"


def no_method(method: str, asked: str, headers: Mapping[str, str]) -> str:
    """Return the message for a method that a path does not have."""
    return f"{method[:20]} is not possible for {_short(asked)}; possible are {headers.get('Allow') or 'other methods'}"


def _short(path: str) -> str:
    return path if len(path) <= LONGEST_PATH else f"{path[:LONGEST_PATH]}…"


def _nearest(path: str, routes: Map) -> str | None:
    """Return the most similar path as long as the asked one, or else the shortest that ends with it."""
    parts = path.strip("/").split("/")
    rules = (rule.rule for rule in routes.iter_rules() if rule.rule.startswith(PAGES) is path.startswith(PAGES))
    known = [rule.strip("/").split("/") for rule in rules]
    like = {"/" + "/".join(_filled(one, parts)): _likeness(one, parts) for one in known if len(one) == len(parts)}
    best = max(like, key=lambda one: like[one], default="")
    if best and like[best] >= LIKE:
        return best
    whole = ["/" + "/".join(one) for one in known if one[-len(parts) :] == parts]
    return min(whole, key=len, default=None)


def _likeness(known: Parts, parts: Parts) -> float:
    """Return the least similarity of a word with the one in its place; variables are like all words."""
    pairs = [(word, part) for word, part in zip(known, parts, strict=True) if not word.startswith("<")]
    return min((1.0 if word == part else SequenceMatcher(None, word, part).ratio() for word, part in pairs), default=0)


def _filled(known: Parts, parts: Parts) -> Parts:
    return [part if word.startswith("<") else word for word, part in zip(known, parts, strict=True)]
