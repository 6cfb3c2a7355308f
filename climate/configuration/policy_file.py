"""Policy file of the operator: rules in YAML or JSON, with the names and the syntax of Blazar's policies."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from climate.domain.policy import DEFAULT_RULES, DEFAULTS, Policy, policy_of
from climate.domain.policy_rules import BadRule
from climate.file_errors import UNREADABLE, reason_of
from climate.settings import SettingError, Settings

PREFIXES = ("blazar:", "climate:")
"""Prefixes of action names."""

LARGEST = 1_000_000


def read(settings: Settings) -> Policy:
    """Return the policy of these settings; SettingError says what is wrong with the file."""
    if not settings.policy_file:
        return DEFAULTS
    path = settings.home / settings.policy_file
    try:
        return _policy(_rules(path))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(
            f"CLIMATE_POLICY_FILE={settings.policy_file!r} cannot be read: {reason_of(error)}"
        ) from error
    except BadRule as error:
        raise SettingError(f"CLIMATE_POLICY_FILE={settings.policy_file!r}: {error}") from error
    except UNREADABLE as error:
        why = reason_of(error)
        raise SettingError(f"CLIMATE_POLICY_FILE={settings.policy_file!r} is neither YAML nor JSON: {why}") from error


def _rules(path: Path) -> dict[str, str]:
    if path.stat().st_size > LARGEST:
        raise BadRule(f"a policy file must have at most {LARGEST} bytes")
    content: object = yaml.safe_load(path.read_text(encoding="utf-8"))
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise BadRule(f"must be a mapping of names to rules, not {type(content).__name__}")
    for name, rule in content.items():
        if not isinstance(name, str) or not isinstance(rule, str):
            raise BadRule(f"{str(name)[:64]!r} must be a text with a rule as a text, such as 'role:member'")
    return content


def _policy(rules: Mapping[str, str]) -> Policy:
    actions: dict[str, str] = {}
    for name, rule in rules.items():
        if not name.startswith(PREFIXES):
            continue
        action = name.partition(":")[2]
        if action not in DEFAULT_RULES:
            known = ", ".join(f"blazar:{one}" for one in sorted(DEFAULT_RULES))
            raise BadRule(f"there is no action {name[:64]!r}; known are {known}")
        if action in actions:
            raise BadRule(f"the rule of {action} is given twice, with both of the prefixes {' and '.join(PREFIXES)}")
        actions[action] = rule
    named = {name: rule for name, rule in rules.items() if not name.startswith(PREFIXES)}
    return policy_of(actions, named)
