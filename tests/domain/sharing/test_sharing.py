"""Who is what to a lease, and what each may know of its sharing."""

from hypothesis import given
from hypothesis import strategies as st

from climate.domain.policy import Caller
from climate.domain.sharing.sharing import Access, Sharing, access, as_seen, may_boot

IDS = st.sampled_from(["a", "b", "c"])
LISTS = st.lists(IDS, unique=True, max_size=3).map(tuple)
SHARINGS = st.builds(Sharing, LISTS, LISTS, LISTS)
CALLERS = st.builds(Caller, IDS, st.sampled_from(["a", "b", "owner"]), st.sampled_from([frozenset({"member"})]))


@given(SHARINGS, CALLERS)
def test_who_is_not_named_is_nobody(sharing: Sharing, caller: Caller) -> None:
    named = caller.project_id in sharing.projects or caller.user_id in (*sharing.viewers, *sharing.extenders)
    relation = access("owner", sharing, caller)
    assert (relation is Access.NONE) == (not named and caller.project_id != "owner")
    assert may_boot("owner", sharing, caller) == (caller.project_id in ("owner", *sharing.projects))


@given(SHARINGS, CALLERS)
def test_others_than_owners_see_themselves_only_and_are_the_same_to_it(sharing: Sharing, caller: Caller) -> None:
    seen = as_seen("owner", sharing, caller)
    assert access("owner", seen, caller) is access("owner", sharing, caller)
    if caller.project_id == "owner":
        assert seen == sharing
    else:
        assert {*seen.projects} <= {caller.project_id}
        assert {*seen.viewers, *seen.extenders} <= {caller.user_id}


def test_administrators_are_owners_of_all_leases() -> None:
    admin = Caller("x", "y", frozenset({"admin"}))
    assert access("owner", Sharing(), admin) is Access.OWNER
    assert not may_boot("owner", Sharing(), admin)
