"""The distribution's name: the same everywhere, and never the one that is somebody else's."""

from __future__ import annotations

import re
import tomllib
from email.parser import Parser
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
from hatchling.builders.wheel import WheelBuilder

from clew.cli.version import find_commit
from clew.distribution import DISTRIBUTION_NAME, VERSION, format_install_command

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
#: On package indexes `clew` is another project.
STRANGER = re.compile(
    r"(?:pip3?|pipx|uvx?|uv tool|uv pip|poetry|pdm)[ \w-]* (?:install|add|run)[^\n`]*?"
    r"['\"\s]clew(?![\w-])"
    r"|(?<![\w.-])clew\[[a-z]"
    r"|(?:version|metadata|distribution|requires)\(\s*['\"]clew['\"]"
)


def _texts() -> Iterator[Path]:
    for name in ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml"):
        yield ROOT / name
    for folder, kinds in (("docs", {".md", ".json"}), ("src", {".py", ".toml"})):
        yield from (path for path in (ROOT / folder).rglob("*") if path.suffix in kinds)
    yield from (path for path in (ROOT / "deploy").rglob("*") if path.is_file())


def test_no_text_tells_people_to_install_a_foreign_package() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in _texts()
        for match in STRANGER.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "pip install clew",
        "pip install 'clew[tui]'",
        ".venv/bin/python -m pip install --upgrade clew",
        "uv tool install clew",
        "pipx install clew",
        "install clew[groq]",
        'version("clew")',
    ],
)
def test_the_search_finds_what_it_looks_for(text: str) -> None:
    assert STRANGER.search(text)
    assert not STRANGER.search(text.replace("clew", "clew-gateway"))


def test_the_project_and_the_code_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (project["name"], project["version"]) == (DISTRIBUTION_NAME, VERSION)
    extras = project["optional-dependencies"]
    assert format_install_command("tui") == "pip install 'clew-gateway[tui]'"
    (everything,) = extras["all"]
    # An extra that breaks when a web page changes must be named explicitly.
    wanted = ",".join(name for name in extras if name not in {"all", "ddgs"})
    assert everything == f"{DISTRIBUTION_NAME}[{wanted}]"


def test_the_wheel_bears_the_name_and_installs_the_command(tmp_path: Path) -> None:
    builder = WheelBuilder(str(ROOT))
    (path,) = builder.build(directory=str(tmp_path), versions=["standard"])
    with ZipFile(path) as wheel:
        (folder,) = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
        metadata = Parser().parsestr(wheel.read(f"{folder}/METADATA").decode())
        commands = wheel.read(f"{folder}/entry_points.txt").decode()
        files = set(wheel.namelist())
        commit = wheel.read("clew/commit.txt").decode().strip()
    assert (metadata["Name"], metadata["Version"]) == (DISTRIBUTION_NAME, VERSION)
    assert "clew = clew.cli:main" in commands
    assert {name.split("/")[0] for name in files} - {folder} == {"clew"}
    assert f"{folder}/licenses/src/clew/web/vendor/LICENSES.txt" in files
    assert commit == find_commit()
    # Everything that is under version control, be it code, a migration or a file of the dashboard.
    source = ROOT / "src"
    kinds = {".py", ".sql", ".js", ".css", ".html", ".svg", ".png", ".txt", ".toml", ".typed"}
    wanted = {
        path.relative_to(source).as_posix()
        for path in source.joinpath("clew").rglob("*")
        if path.suffix in kinds or path.name == "py.typed"
    }
    assert wanted <= files
    assert not [one for one in metadata.get_all("Requires-Dist", []) if one.startswith("clew[")]
