"""The bars that no linter holds: sizes, first lines, and where the outside world is read."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("climate", "api", "workers", "plugins", "benchmarks", "migrations", "deploy")
SOURCES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

LONGEST_FILE, LONGEST_FUNCTION, DEEPEST = 500, 40, 3
USUAL_FILE, USUALLY = 300, 0.9
"""Nine in ten source files have at most so many lines."""

WIDEST_PACKAGE = 16
"""Most modules in a package beside `__init__`. A reader finds one among them at a glance."""
WIDE_PACKAGES: set[str] = set()
"""Packages that are wider, which may only get fewer."""

BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)
ENTRIES = {
    "climate/settings/__init__.py",
    "climate/cli/__init__.py",
    "climate/runner/first_run.py",
    "api/wsgi.py",
    "benchmarks/scratch.py",
}
"""Modules in which a process begins, and hands its environment to the settings."""
HEADLESS = {"What", "Which", "Who", "Whom", "How", "Whether", "Where", "When", "Why", "If", "Of", "So"}
"""A docstring begins with a verb or a noun."""
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a source file, parsed once for all rules."""
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def depth(node: ast.AST) -> int:
    """How deeply blocks are nested below a node; an elif is not one level deeper."""
    deepest = 0
    for field, child in ((f, c) for f, v in ast.iter_fields(node) for c in (v if isinstance(v, list) else [v])):
        if not isinstance(child, ast.AST) or isinstance(child, ast.FunctionDef | ast.ClassDef):
            continue
        is_elif = isinstance(node, ast.If) and field == "orelse" and isinstance(child, ast.If)
        deepest = max(deepest, depth(child) + (isinstance(child, BLOCKS) and not is_elif))
    return deepest


def faults(path: Path) -> Iterator[str]:
    """What is wrong with a source file."""
    text = path.read_text(encoding="utf-8")
    tree = parsed(path)
    if not (ast.get_docstring(tree) or "").partition("\n")[0].endswith((".", "?", ":")):
        yield "does not open with a sentence"
    for node in ast.walk(tree):
        first = (ast.get_docstring(node) or "").partition(" ")[0] if isinstance(node, DOCUMENTED) else ""
        if first.strip("`,.:;") in HEADLESS:
            yield f"line {getattr(node, 'lineno', 1)}: a docstring begins with {first}"
    if text.count("\n") > LONGEST_FILE:
        yield f"has {text.count(chr(10))} lines"
    for function in functions(tree):
        if (function.end_lineno or 0) - function.lineno >= LONGEST_FUNCTION:
            yield f"{function.name} is longer than {LONGEST_FUNCTION} lines"
        if depth(function) > DEEPEST:
            yield f"{function.name} is nested deeper than {DEEPEST}"
    if any(isinstance(node, ast.Global) for node in ast.walk(tree)):
        yield "has a global"
    apart = name(path).startswith("benchmarks") or name(path) in ENTRIES
    # The second look leaves out comments, and takes long.
    if not apart and "os.environ" in text and "os.environ" in ast.unparse(tree):
        yield "reads the environment"


def test_source_files_keep_the_bars() -> None:
    assert [f"{name(path)}: {fault}" for path in SOURCES for fault in faults(path)] == []


def test_nine_in_ten_source_files_are_short() -> None:
    short = [path for path in SOURCES if path.read_text(encoding="utf-8").count("\n") <= USUAL_FILE]
    assert len(short) >= USUALLY * len(SOURCES)


def test_packages_are_narrow() -> None:
    product = [path for path in SOURCES if not name(path).startswith(("benchmarks/", "migrations/", "deploy/"))]
    modules = Counter(name(path.parent) for path in product if path.name != "__init__.py")
    wide = {package for package, number in modules.items() if number > WIDEST_PACKAGE}
    assert wide - WIDE_PACKAGES == set(), "cut these packages by capability"
    assert WIDE_PACKAGES - wide == set(), "take these out of WIDE_PACKAGES"


def test_tests_put_fakes_at_ports_and_patch_nothing() -> None:
    patching = re.compile(r"\b(monkeypatch|mocker|mock)\b")
    assert [name(path) for path in TESTS if path != Path(__file__) and patching.search(path.read_text("utf-8"))] == []


def waits(path: Path) -> Iterator[str]:
    """Calls in a source file that lock rows and wait for them."""
    calls = (node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call))
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "with_for_update":
            given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
            if "True" not in (given.get("skip_locked"), given.get("read")):
                yield f"{name(path)}: {ast.unparse(call)[-80:]}"


def test_engine_waits_for_rows_in_one_module() -> None:
    engine = [path for path in SOURCES if name(path).startswith(("climate/store/", "climate/service/", "plugins/"))]
    found = [call for path in engine if path.name != "locks.py" for call in waits(path)]
    assert found == [], "lock rows through climate/store/locks.py, which knows the order"


def test_keys_of_advisory_locks_stand_in_one_module() -> None:
    hashed = [name(path) for path in SOURCES if "hashtext" in path.read_text(encoding="utf-8")]
    assert hashed == ["climate/database/advisory_locks.py", "climate/store/locks.py"]
    numbers = re.compile(r"advisory_(xact_)?lock(_shared)?\(\d")
    assert [name(path) for path in SOURCES if numbers.search(path.read_text(encoding="utf-8"))] == []


def imported(path: Path) -> Iterator[str]:
    """The modules that a source file imports, and what it imports from them."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_drivers_know_neither_networks_nor_the_database() -> None:
    foreign = ("climate.compute.network.", "climate.compute.store.", "sqlalchemy", "psycopg")
    drivers = [path for path in SOURCES if name(path).startswith("climate/compute/virt/")]
    assert len(drivers) > 10
    used = {f"{name(path)}: {module}" for path in drivers for module in imported(path)}
    assert [one for one in sorted(used) if f"{one.partition(': ')[2]}.".startswith(foreign)] == []


def runs_statements(module: str) -> bool:
    """Return whether a name imported from a store is more than a value: a function, or a module that has a connection.

    Classes and constants begin with a capital letter.
    """
    outer, _, last = module.rpartition(".")
    if not (".store." in f"{outer}." or last == "store"):
        return False
    source = ROOT / f"{module.replace('.', '/')}.py"
    return "Connection" in source.read_text(encoding="utf-8") if source.exists() else not last[:1].isupper()


def database_use(path: Path) -> Iterator[str]:
    """Yield what of the database a source file touches itself: engines, transactions, functions of stores."""
    tree = parsed(path)
    names = (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    yield from (name for name in names if name in ("engine", "begin", "connect"))
    foreign = ("sqlalchemy", "psycopg", "climate.database.connections")
    yield from (module for module in imported(path) if module.startswith(foreign) or runs_statements(module))


def test_api_leaves_transactions_to_services() -> None:
    api = [path for path in SOURCES if name(path).startswith("api/")]
    assert len(api) > 100
    assert [f"{name(path)}: {use}" for path in api for use in database_use(path)] == []


def test_services_would_be_found_to_use_the_database() -> None:
    found = {*database_use(ROOT / "climate/compute/projects/keypairs.py")}
    assert {
        "engine",
        "begin",
        "climate.database.connections.reading",
        "climate.compute.store.projects.keypairs",
    } <= found
