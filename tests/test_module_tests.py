"""Each module of 80 lines and more has a test file of its name, except for those listed in modules_without_test.txt.

`tests/service/leases/test_update.py` is the test of `climate/service/leases/update.py`.  The list may only get shorter:
a module on it is covered by tests of other modules, by stories in tests/scenarios or by the conformance suites.
"""

from pathlib import Path

ROOT = Path(__file__).parent.parent
LISTED = Path(__file__).with_name("modules_without_test.txt").read_text(encoding="utf-8").splitlines()
TREES = ("climate", "api", "workers", "plugins")
LINES = 80


def own_test(module: Path) -> Path:
    """Return the path of the test file with the module's name, relative to the root."""
    folder = module.parent.relative_to("climate") if module.parts[0] == "climate" else module.parent
    return Path("tests") / folder / f"test_{module.name}"


def without_test() -> set[str]:
    """Return the modules of 80 lines and more without a test file of their name."""
    paths = (path for tree in TREES for path in (ROOT / tree).rglob("*.py") if path.name != "__init__.py")
    long = (path.relative_to(ROOT) for path in paths if len(path.read_text(encoding="utf-8").splitlines()) >= LINES)
    return {str(module) for module in long if not (ROOT / own_test(module)).exists()}


def test_new_modules_have_a_test_of_their_name() -> None:
    assert without_test() - set(LISTED) == set(), "add a test file of the module's name"


def test_the_list_names_no_module_that_has_its_test() -> None:
    stale = [line for line in LISTED if not (ROOT / line).exists() or (ROOT / own_test(Path(line))).exists()]
    assert stale == [], "take these lines out of modules_without_test.txt"
