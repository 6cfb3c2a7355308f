"""A file of rules: what it may say, and what the start says of one that is wrong."""

import json
from pathlib import Path

import pytest

from climate import bootstrap
from climate.configuration import policy_file
from climate.domain.policy import DEFAULT_RULES, Caller
from climate.settings import SettingError, Settings

FILE = "policy.yaml"


def settings_with(home: Path, text: str) -> Settings:
    (home / FILE).write_text(text, encoding="utf-8")
    return Settings(home=home, policy_file=FILE)


def allows(settings: Settings, action: str, *roles: str) -> bool:
    who = Caller("u1", "p1", frozenset(roles))
    return policy_file.read(settings).allows(who.credentials, action)


@pytest.mark.parametrize("prefix", ["blazar:", "climate:"])
def test_a_rule_of_an_action_goes_before_the_default_one(tmp_path: Path, prefix: str) -> None:
    settings = settings_with(tmp_path, f'"{prefix}oshosts:get": "rule:project_reader_or_admin"\n')
    assert allows(settings, "oshosts:get", "reader")
    assert not allows(settings, "oshosts:post", "reader")
    assert not allows(Settings(), "oshosts:get", "reader")


def test_the_file_may_be_json_and_have_rules_of_its_own(tmp_path: Path) -> None:
    rules = {"staff": "role:operator or project_id:p2", "blazar:leases:post": "rule:staff", "blazar:leases:delete": "!"}
    settings = settings_with(tmp_path, json.dumps(rules))
    assert allows(settings, "leases:post", "operator")
    assert not allows(settings, "leases:post", "member")
    assert not allows(settings, "leases:delete", "admin")
    assert allows(settings, "leases:get", "reader")


def test_each_action_can_be_named(tmp_path: Path) -> None:
    settings = settings_with(tmp_path, "\n".join(f'"blazar:{action}": "!"' for action in DEFAULT_RULES))
    assert not any(allows(settings, action, "admin") for action in DEFAULT_RULES)


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}"])
def test_a_file_that_says_nothing_changes_nothing(tmp_path: Path, text: str) -> None:
    assert allows(settings_with(tmp_path, text), "leases:get", "reader")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is neither YAML nor JSON"),
        ("- role:admin", "must be a mapping of names to rules, not list"),
        ('"blazar:leases:get": [["role:admin"]]', "'blazar:leases:get' must be a text with a rule as a text"),
        ('"blazar:leases:get": true', "must be a text with a rule as a text"),
        ('"blazar:leases:burn": "@"', "there is no action 'blazar:leases:burn'; known are blazar:"),
        ('"blazar:leases:get": "role"', "the rule of leases:get: 'role' is not a check"),
        ('"blazar:leases:get": "rule:staf"', "the rule of leases:get: there is no rule 'staf'"),
        ('"staff": "rule:staff"', "the rule of staff: rule:staff refers to itself"),
        ('"staff": "rule:people"\n"people": "rule:staff"', "refers to itself"),
        ('"blazar:leases:get": "@"\n"climate:leases:get": "!"', "the rule of leases:get is given twice"),
        ("x: &a [*a]", "must be a text"),
    ],
)
def test_a_bad_file_stops_the_start_with_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingError, match=r"CLIMATE_POLICY_FILE='policy\.yaml'") as refusal:
        bootstrap.check(settings_with(tmp_path, text))
    assert said in str(refusal.value)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00x", b"#" * 1_000_001])
def test_a_file_that_cannot_be_read_stops_it_too(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / FILE).write_bytes(content)
    with pytest.raises(SettingError, match=r"CLIMATE_POLICY_FILE='policy\.yaml'"):
        policy_file.read(Settings(home=tmp_path, policy_file=FILE))
