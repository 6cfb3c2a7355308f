"""The types of storage beside what the server declares and answers."""

from api.reservation.resources import storage_schema
from climate.cli.response_types import storage
from tests.cli.response_types.answer_types import differences, misfits, recorded


def test_a_type_has_the_keys_of_its_schema() -> None:
    assert differences(storage.StoragePool, storage_schema.StoragePoolOut) == []
    assert differences(storage.HeldStorage, storage_schema.StorageHeldOut) == []
    assert differences(storage.StorageAllocation, storage_schema.StorageAllocationOut) == []


def test_recorded_answers_are_of_these_types() -> None:
    assert misfits(recorded("/storage-pools", "storage_pools"), list[storage.StoragePool]) == []
