"""Rules of climate within an iptables table, merged into the output of iptables-save.

The layout is that of Nova's iptables manager. A wrapped chain `C` of the program `P` is called `P-C`; in a rule, `$C`
stands for that name. `nova-filter-top` and `nova-postrouting-bottom` are shared between programs. Lines of other
programs keep their content and position.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

log = logging.getLogger(__name__)

LONGEST_BINARY = 16
"""Maximum length of the program's name: a chain's name has at most 28 characters, and `POSTROUTING` is part of one."""

FILTER_TOP, NAT_BOTTOM = "nova-filter-top", "nova-postrouting-bottom"


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule of a chain; `top`: before all others of that chain, including those of other programs."""

    chain: str
    text: str
    wrap: bool = True
    top: bool = False


@dataclass
class Table:
    """Chains and rules of the program `binary` in one table."""

    binary: str
    chains: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not re.fullmatch(rf"[A-Za-z0-9_.]{{1,{LONGEST_BINARY}}}", self.binary):
            raise ValueError(
                f"{self.binary!r} is not a valid prefix of chain names: use 1 to {LONGEST_BINARY} letters or digits"
            )

    def add_chain(self, name: str, *, wrap: bool = True) -> None:
        """Add a chain unless it exists."""
        known = self.chains if wrap else self.shared
        if name not in known:
            known.append(name)

    def add(self, chain: str, text: str, *, wrap: bool = True, top: bool = False) -> None:
        """Add a rule to a chain. Raise ValueError if the program has no such chain."""
        if wrap and chain not in self.chains:
            raise ValueError(f"Unknown chain: {chain!r}; there are {', '.join(self.chains) or 'none'}")
        self.rules.append(Rule(chain, self._filled(text), wrap, top))

    def remove(self, chain: str, text: str, *, wrap: bool = True, top: bool = False) -> None:
        """Remove a rule; log a warning if it is missing."""
        rule = Rule(chain, self._filled(text), wrap, top)
        if rule in self.rules:
            self.rules.remove(rule)
        else:
            log.warning("iptables rule %r not found in chain %s", text, chain)

    def merged(self, lines: Sequence[str]) -> list[str]:
        """Return the lines of a table between its name and COMMIT, with exactly the program's wanted rules."""
        rules = [self.line(rule) for rule in sorted(self.rules, key=lambda rule: not rule.top)]
        chains = [f":{name} - [0:0]" for name in [*self.shared, *(f"{self.binary}-{name}" for name in self.chains)]]
        wanted = {*rules, *chains}
        others = [line for line in lines if not self._ours(line) and _unmeasured(line) not in wanted]
        for name in {FILTER_TOP, NAT_BOTTOM} - set(self.shared):
            others = _without_unused(name, others)
        declared, foreign = _parted(others, re.compile("^:"))
        bottom, first = _parted(rules, re.compile(f"-j {NAT_BOTTOM}$"))
        return [*declared, *chains, *_once(first), *foreign, *_once(bottom)]

    def line(self, rule: Rule) -> str:
        """Return a rule in the syntax of iptables-restore."""
        chain = f"{self.binary}-{rule.chain}" if rule.wrap else rule.chain
        return f"-A {chain} {rule.text}"

    def _filled(self, text: str) -> str:
        return re.sub(r"\$(\S+)", lambda match: f"{self.binary}-{match[1]}", text)

    def _ours(self, line: str) -> bool:
        return any(name.startswith(f"{self.binary}-") for name in _mentioned(line))


def apply(saved: str, tables: Mapping[str, Table]) -> str:
    """Return the input of iptables-restore for the output of iptables-save, with only the tables of these names."""
    result = _sections(saved)
    lines: list[str] = []
    for name, table in tables.items():
        lines += [f"*{name}", *table.merged(result.get(name, ())), "COMMIT"]
    return "".join(f"{line}\n" for line in lines)


def _sections(saved: str) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    name = ""
    for line in (line.strip() for line in saved.splitlines()):
        if line.startswith("*"):
            name = line[1:]
            sections[name] = []
        elif name and line and line != "COMMIT" and not line.startswith("#"):
            sections[name].append(line)
    return sections


def _mentioned(line: str) -> list[str]:
    """Return the chains that a line refers to."""
    words = line.split()
    if line.startswith(":"):
        return [words[0][1:]]
    return [name for option, name in pairwise(words) if option in {"-A", "-j", "-g"}]


def _without_unused(name: str, lines: Sequence[str]) -> list[str]:
    """Return the lines without a shared chain and its jumps, if no program has rules in it."""
    used = any(line.startswith(f"-A {name} ") for line in lines)
    return [line for line in lines if used or name not in _mentioned(line)]


def _parted(lines: Sequence[str], pattern: re.Pattern[str]) -> tuple[list[str], list[str]]:
    """Return the lines with the pattern, and the others."""
    return [line for line in lines if pattern.search(line)], [line for line in lines if not pattern.search(line)]


def _unmeasured(line: str) -> str:
    """Return a chain's line without its counters."""
    return re.sub(r"\[\d+:\d+\]$", "[0:0]", line) if line.startswith(":") else line


def _once(lines: Sequence[str]) -> list[str]:
    """Return the lines without duplicates; the last occurrence stays."""
    return list(reversed(dict.fromkeys(reversed(lines))))
