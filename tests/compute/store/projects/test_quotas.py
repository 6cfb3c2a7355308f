"""Limits of projects: their own, those of the class `default`, and the built-in ones."""

from climate.compute.store.projects import quotas
from tests.compute.cloud_factory import Place


def test_a_limit_is_the_own_one_then_that_of_the_default_class_then_the_built_in_one(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        assert quotas.limits(conn, "p") == quotas.defaults(conn) == quotas.BUILT_IN
        assert quotas.lock_limits(conn, "p") == quotas.BUILT_IN
        quotas.set_limits(conn, "p", {"cores": 7, "instances": 50})
        quotas.set_class_limits(conn, quotas.DEFAULT_CLASS, {"cores": 9, "instances": 3, "metadata_items": 1})
        changed = {**quotas.BUILT_IN, "cores": 9, "instances": 3}
        assert quotas.defaults(conn) == quotas.limits(conn, "q") == changed
        assert quotas.limits(conn, "p") == quotas.lock_limits(conn, "p") == {**changed, "cores": 7, "instances": 50}
        quotas.set_limits(conn, "p", {"cores": None})
        assert quotas.limits(conn, "p")["cores"] == 9
        quotas.forget_limits(conn, "p")
        assert quotas.limits(conn, "p") == changed


def test_a_class_keeps_what_was_set_before(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        assert quotas.class_limits(conn, "gold") == {}
        assert quotas.set_class_limits(conn, "gold", {"cores": 9}) == {"cores": 9}
        assert quotas.set_class_limits(conn, "gold", {"instances": 1}) == {"cores": 9, "instances": 1}
        assert quotas.class_limits(conn, "gold") == {"cores": 9, "instances": 1}
        assert quotas.defaults(conn) == quotas.BUILT_IN
