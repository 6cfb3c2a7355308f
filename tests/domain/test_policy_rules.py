"""The language of rules, and the default policy in it."""

import pytest

from climate.domain.errors import Forbidden
from climate.domain.policy import IMPLIED, RULES, Caller, policy_of, require
from climate.domain.policy_rules import BadRule, Credentials, compiled

WHO = Credentials(frozenset({"member", "reader", "auditor"}), "p1", "u1")


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("", True),
        ("@", True),
        ("!", False),
        ("role:member", True),
        ("role:MEMBER", True),
        ("role:admin", False),
        ("not role:admin", True),
        ("not not role:admin", False),
        ("role:admin or role:member", True),
        ("role:admin and role:member", False),
        ("role:member and not role:admin", True),
        ("role:member or role:admin and !", True),
        ("(role:member or role:admin) and !", False),
        ("((role:auditor))", True),
        ("not (role:admin or role:member)", False),
        ("NOT role:admin AND role:member", True),
        ("project_id:%(project_id)s", True),
        ("(role:member and project_id:%(project_id)s)", True),
        ("project_id:p1", True),
        ("project_id:p2", False),
        ("user_id:%(user_id)s", True),
        ("user_id:u2", False),
        ("is_admin:True", False),
        ("is_admin:False", True),
        ("rule:known", True),
        ("not rule:known", False),
    ],
)
def test_what_a_rule_says(rule: str, holds: bool) -> None:
    assert compiled(rule, {"known": "role:member and rule:more", "more": "@"})(WHO) is holds


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("role", "'role' is not a check; known are role:"),
        ("role:", "'role:' is not a check"),
        ("group:x", "'group:x' is not a check"),
        ("http://there/check", "is not a check"),
        ("role:a role:b", "'role:b' stands where 'and', 'or' or the end should"),
        ("role:a and", "a check is missing"),
        ("and role:a", "a check is missing"),
        ("not", "a check is missing"),
        ("()", "a check is missing"),
        ("(role:a", "a parenthesis is not closed"),
        ("role:a)", r"'\)' stands where"),
        ("rule:nobody", "there is no rule 'nobody'"),
        ("rule:itself", "rule:itself refers to itself"),
        ("rule:one", "refers to itself"),
        ("project_id:%(user_id)s", "must compare with"),
        ("(" * 40 + "@" + ")" * 40, "nested more than 32 deep"),
        ("not " * 40 + "@", "nested more than 32 deep"),
        ("role:a or " * 500 + "@", "4096 characters at most"),
    ],
)
def test_what_cannot_be_understood(rule: str, said: str) -> None:
    with pytest.raises(BadRule, match=said):
        compiled(rule, {"itself": "not rule:itself", "one": "rule:two", "two": "rule:one"})


@pytest.mark.parametrize("role", [*IMPLIED, "auditor"])
@pytest.mark.parametrize("action", RULES)
def test_the_default_rules_ask_for_the_roles_of_the_table(action: str, role: str) -> None:
    who = Caller("u", "p", frozenset({role}))
    allowed = True
    try:
        require(who, action)
    except Forbidden:
        allowed = False
    assert allowed is who.has(RULES[action])


def test_an_action_that_nobody_knows_is_nobodys() -> None:
    with pytest.raises(Forbidden, match="Policy doesn't allow climate:leases:burn to be performed"):
        require(Caller("u", "p", frozenset({"admin"})), "leases:burn")


def test_named_rules_stand_before_the_default_ones() -> None:
    operators = policy_of({}, {"admin": "role:operator"})
    who = Caller("u", "p", frozenset({"operator"}), policy=operators)
    require(who, "oshosts:post")
    with pytest.raises(Forbidden):
        require(Caller("u", "p", frozenset({"admin"}), policy=operators), "oshosts:post")
