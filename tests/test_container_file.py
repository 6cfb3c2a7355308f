"""The container file names files that are there, and builds without a network."""

import json
import re
import shlex
from pathlib import PurePosixPath

from climate.settings import Settings
from tests.doc_pages import blocks, section
from tests.test_distribution import PROJECT, ROOT

DEPLOY = ROOT / "deploy"
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()

Instructions = list[tuple[str, str]]


def read(name: str) -> Instructions:
    """Return the instructions of a container file with their arguments; a line may continue in the next one."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / name).read_text(encoding="utf-8"))
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def named(instructions: Instructions, word: str) -> list[str]:
    return [rest for found, rest in instructions if found == word]


IMAGE, BASE = read("Containerfile"), read("Containerfile.base")


def written_by(target: str) -> set[str]:
    """Return the folders into which the commands of a make target write."""
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert recipe is not None, f"make has no target {target}"
    (usual,) = re.findall(r"^DIST \?= (\S+)$", MAKEFILE, re.MULTILINE)
    return {folder.replace("$(DIST)", usual) for folder in re.findall(r" -d (\S+)", recipe[1])}


def test_what_is_copied_is_there_and_not_ignored() -> None:
    copied = {shlex.split(rest)[0] for rest in named(IMAGE, "COPY") if not rest.startswith("--from=")}
    made = written_by("wheels")
    assert [path for path in copied if path not in made and not (ROOT / path).is_file()] == []
    assert {line.removeprefix("!") for line in IGNORED} - {"*"} == copied


def test_stages_copy_from_stages_that_exist() -> None:
    stages = {rest.rpartition(" AS ")[2] for rest in named(IMAGE, "FROM") if " AS " in rest}
    assert {rest.split()[0] for rest in named(IMAGE, "COPY") if rest.startswith("--from=")} == {
        f"--from={stage}" for stage in stages
    }


def test_no_command_of_the_image_needs_a_network() -> None:
    words = [word for run in named(IMAGE, "RUN") for word in run.split("&&")]
    pips = [command for command in words if " pip " in command]
    assert len(pips) == 2
    assert all("--no-index" in command and "--find-links /build/wheels" in command for command in pips)
    assert [command for command in words if re.search(r"\b(apt|apt-get|curl|wget|git|uv)\b", command)] == []
    assert not [rest for word, rest in IMAGE if word == "ADD"]


def test_it_installs_as_the_page_does_whose_commands_a_test_runs() -> None:
    commands = [word for run in named(IMAGE, "RUN") for word in run.split(" && ") if " install " in word]
    shown = [
        line for block in blocks(section("install", "The wheel")) for line in block.splitlines() if "/pip " in line
    ]
    ours = [shlex.split(command.replace("/build/wheels", "dist/wheels").replace("/build/", "")) for command in commands]
    assert [words[words.index("install") :] for words in ours] == [
        words[words.index("install") :] for words in map(shlex.split, shown)
    ]


def test_the_base_is_debian_with_the_python_that_climate_needs() -> None:
    assert named(BASE, "FROM") == ["debian:12"]
    assert {"python3", "python3-venv"} <= {word for run in named(BASE, "RUN") for word in run.split()}
    assert {rest.partition(" AS ")[0] for rest in named(IMAGE, "FROM")} == {"${BASE}"}


def test_it_runs_the_installed_command_as_an_ordinary_user() -> None:
    assert json.loads(named(IMAGE, "ENTRYPOINT")[0]) == [*PROJECT["scripts"]]
    assert json.loads(named(IMAGE, "CMD")[0]) == ["up"]
    (user,) = named(IMAGE, "USER")
    assert f"climate {user}" not in ("climate root", "climate 0")
    assert any(
        f"useradd --system --uid 64100 --create-home --home-dir /var/lib/climate {user}" in run
        for run in named(IMAGE, "RUN")
    )


def test_its_settings_exist_and_its_home_is_the_volume() -> None:
    (line,) = named(IMAGE, "ENV")
    environ = dict(word.split("=", 1) for word in shlex.split(line))
    ours = {name.removeprefix("CLIMATE_").lower() for name in environ if name.startswith("CLIMATE_")}
    assert ours <= {*Settings.__dataclass_fields__}
    assert environ["PATH"].split(":")[0] == str(PurePosixPath("/opt/climate/bin"))
    assert [environ["CLIMATE_HOME"]] == named(IMAGE, "VOLUME") == named(IMAGE, "WORKDIR")
