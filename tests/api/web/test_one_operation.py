"""Contract of views: a page that changes something calls one operation of a service for it, and reading ones none."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from api.web import views

FOLDER = Path(views.__file__).parent
SERVICES = ("climate.service", "climate.compute", "climate.identity", "api.compute.servers")
READERS = frozenset(
    {
        *(
            "get",
            "listed",
            "history",
            "present",
            "of",
            "estimated",
            "report",
            "at",
            "read",
            "rows",
            "explain",
            "hosts_of",
        ),
        *("named", "projects", "credentials", "preferences", "of_resource", "of_servers", "of_token", "info", "find"),
        *(
            "who",
            "console_output",
            "scheduling",
            "calendar",
            "through",
            "relation",
            "resident",
            "of_parent",
            "names",
            "described",
        ),
    }
)
"""Operations that change nothing."""


class Module:
    """A module of views: its functions, and the operations that each one calls."""

    def __init__(self, path: Path) -> None:
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.functions = {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}
        self.services = set(self._imported())

    def _imported(self) -> Iterator[str]:
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(SERVICES):
                yield from (one.asname or one.name for one in node.names if one.name[0].islower())

    def views(self) -> Mapping[str, str]:
        """Return the method of each view."""
        found = {}
        for function in self.functions.values():
            for one in function.decorator_list:
                if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "page":
                    found[function.name] = str(ast.literal_eval(one.args[0]))
        return found

    def changes(self, name: str) -> frozenset[str]:
        """Return the changing operations that a function calls, also by other functions of the module."""
        found = set[str]()
        for node in ast.walk(self.functions[name]):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self.functions:
                found |= self.changes(node.func.id) if node.func.id != name else set()
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not _is_trial(node):
                owner = node.func.value
                is_change = node.func.attr.islower() and node.func.attr not in READERS
                if isinstance(owner, ast.Name) and owner.id in self.services and is_change:
                    found.add(f"{owner.id}.{node.func.attr}")
        return frozenset(found)


def _is_trial(call: ast.Call) -> bool:
    given = [one.value for one in call.keywords if one.arg == "dry_run"]
    return bool(given) and isinstance(given[0], ast.Constant) and given[0].value is True


MODULES = sorted(path for path in FOLDER.glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_view_calls_one_operation(path: Path) -> None:
    module = Module(path)
    for name, method in module.views().items():
        found = module.changes(name)
        assert len(found) <= (method == "POST"), f"{path.stem}.{name} calls {', '.join(sorted(found))}"


def test_second_operation_would_be_found(tmp_path: Path) -> None:
    text = (
        "from climate.service.leases import leases\n"
        '@page("POST", "/x", "leases:post")\n'
        "def view():\n    leases.get()\n    leases.create()\n    _more()\n"
        "def _more():\n    leases.delete()\n"
        '@page("GET", "/y", "leases:get")\n'
        "def tries():\n    leases.create(dry_run=True)\n"
    )
    (tmp_path / "module.py").write_text(text, encoding="utf-8")
    module = Module(tmp_path / "module.py")
    assert module.changes("view") == {"leases.create", "leases.delete"}
    assert module.changes("tries") == frozenset()
