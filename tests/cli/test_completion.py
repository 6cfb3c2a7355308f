"""What a shell completes, asked as the scripts of the shells ask."""

import click
import pytest
from click.shell_completion import ShellComplete

from climate.cli.connection.session import Session
from climate.cli.root import root
from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire


def completed(environ: dict[str, str], line: list[str], begun: str = "") -> list[str]:
    """Return what is offered after these words for a word that begins so."""
    session = Session(environ)
    items = ShellComplete(root, {"obj": session}, "climate", "_CLIMATE_COMPLETE").get_completions(line, begun)
    session.close()
    return [item.value for item in items]


@pytest.mark.parametrize("words", [["lease", "show"], ["lease", "delete", "one"], ["boot", "web", "--lease"]])
def test_names_of_leases_are_offered(wire: Wire, environ: dict[str, str], words: list[str]) -> None:
    for name in ("training", "trial", "other", "two words", "x$(id)"):
        wire.add_lease(name)
    assert completed(environ, words, "tr") == ["training", "trial"]
    assert completed(environ, words) == ["other", "training", "trial"]


def test_names_of_images_and_pools_are_offered(environ: dict[str, str]) -> None:
    assert completed(environ, ["server", "rebuild", "web", "--image"]) == ["cirros"]
    assert completed(environ, ["pool", "show"], "res") == ["reservation"]


def test_commands_are_offered_and_former_names_are_not(environ: dict[str, str]) -> None:
    assert completed(environ, [], "floating") == ["floating"]
    assert "create" in completed(environ, ["lease"], "c")


def test_a_cloud_that_does_not_answer_completes_nothing(environ: dict[str, str]) -> None:
    assert completed({**environ, "OS_CLOUD": "none"}, ["lease", "show"]) == []
    assert completed({}, ["lease", "show"]) == []


def test_the_option_for_the_cloud_is_honoured(wire: Wire, environ: dict[str, str]) -> None:
    wire.add_lease("one")
    assert completed(environ, ["--os-cloud", "none", "lease", "show"]) == []
    assert completed(environ, ["--os-cloud", "climate", "lease", "show"]) == ["one"]


def test_without_a_shell_the_line_for_ones_own_shell_is_printed(cli: Cli, environ: dict[str, str]) -> None:
    environ["SHELL"] = "/usr/bin/zsh"
    assert cli("completion").out == "echo 'source <(climate completion zsh)' >> ~/.zshrc\n"
    environ["SHELL"] = "/bin/fish"
    assert "| source" in cli("completion").out
    environ["SHELL"] = ""
    assert "bash" in cli("completion").out


def test_names_are_ordinary_texts_for_the_command() -> None:
    command = root.get_command(click.Context(root), "lease")
    assert isinstance(command, click.Group)
    (argument,) = (one for one in command.commands["show"].params if one.name == "lease")
    assert argument.type.convert("one", argument, None) == "one"
