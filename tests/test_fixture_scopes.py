"""Fixtures of a package end with the tests of their folder.

pytest knows a package by its `__init__.py`. Without one, a fixture of the package lasts until the run ends: a
browser of Playwright then keeps its event loop running below all later tests of the process.
"""

from pathlib import Path

TESTS = Path(__file__).parent
SCOPE = 'scope="' + 'package"'


def test_a_folder_with_fixtures_of_its_package_is_a_package() -> None:
    modules = [path for path in TESTS.rglob("*.py") if SCOPE in path.read_text(encoding="utf-8")]
    assert modules, "no fixture of a package: delete this test"
    lacking = [str(path.parent) for path in modules if not (path.parent / "__init__.py").exists()]
    assert lacking == [], "add an __init__.py, or the fixtures last until the run ends"
