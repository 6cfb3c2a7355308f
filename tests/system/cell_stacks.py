"""Complete stacks as the cells of a tree: settings, links, and the death of all processes of one."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil

from tests.system.api_client import Api
from tests.system.stack import Stack, await_so

C = "/compute/v2.1"
TOP, CHILDREN = "top", ("left", "right")
SECRET = "a secret of both of them"


def cell_stack(home: Path, name: str, **more: str) -> Stack:
    """A stack that is the cell of this name; top is the API cell."""
    settings = {
        "CLIMATE_CELLS_ENABLE": "true",
        "CLIMATE_CELL_NAME": name,
        "CLIMATE_CELL_TYPE": "api" if name == TOP else "compute",
        "CLIMATE_WEB_PROCESSES": "1",
        "CLIMATE_WORKER_PROCESSES": "1",
    }
    return Stack(home, more={**settings, **more})


def link(here: Stack, other: Stack, name: str, kind: str) -> None:
    """Let a cell know another one as its parent or child."""
    api = Api(here.home, "climate")
    cell = {"name": name, "type": kind, "transport_url": other.redis_url, "secret": SECRET}
    answer = api.ask("POST", f"{C}/os-cells", {"cell": cell})
    api.close()
    assert answer.status_code == 200, answer.text


@contextmanager
def cell_stacks(homes: dict[str, Path], seconds: float, **more: str) -> Iterator[dict[str, Stack]]:
    """A top cell and its children, each with stores and processes of its own; their capacities are known at the top."""
    stacks = {name: cell_stack(home, name, **more) for name, home in homes.items()}
    with ExitStack() as ends:
        for one in stacks.values():
            ends.callback(one.stop)
            one.start()
        for child in homes:
            if child != TOP:
                link(stacks[TOP], stacks[child], child, "child")
                link(stacks[child], stacks[TOP], TOP, "parent")
        admin = Api(stacks[TOP].home, "climate")
        ends.callback(admin.close)
        children = [name for name in homes if name != TOP]
        await_so(lambda: all(_known(admin, child) for child in children), seconds, "capacities to reach the top")
        yield stacks


def _known(admin: Api, child: str) -> bool:
    found = admin.read(f"{C}/os-cells/{child}/capacities")["cell"]["capacities"]
    return bool(found.get("ram_free", {}).get("total_mb"))


def kill(stack: Stack) -> None:
    """Kill all processes of a stack at once."""
    parent = psutil.Process(stack.pid)
    for one in (parent, *parent.children(recursive=True)):
        with suppress(psutil.Error):
            one.kill()
    stack.stop()
    await_so(lambda: not stack.left(), 60, "the processes to be gone")
