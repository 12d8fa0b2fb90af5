"""The files of several gateways are what the page shows, and say what Clew understands."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from clew.api.auth import PUBLIC_PATHS
from clew.config import load_settings

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "scale-out"
PAGE = (ROOT / "docs" / "how-to" / "scale-out.md").read_text(encoding="utf-8")
FILES = sorted(path.name for path in FOLDER.iterdir())
#: In the place of what Compose and systemd fill in.
_FILLED = re.compile(r"\$\{(\w+)[^}]*\}")


def text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@pytest.fixture
def compose() -> Any:
    return yaml.safe_load(text("compose.yaml"))


def env_file() -> dict[str, str]:
    lines = [line for line in text("clew.env").splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", maxsplit=1) for line in lines)


@pytest.mark.parametrize("name", FILES)
def test_the_page_shows_each_file_as_it_is_or_names_it(name: str) -> None:
    shown = f"```{_language(name)}\n{text(name)}```"
    assert shown in PAGE or f"(../../deploy/scale-out/{name})" in PAGE


def _language(name: str) -> str:
    kinds = {".yaml": "yaml", ".service": "ini", ".cfg": "text", ".env": "ini"}
    return kinds.get(Path(name).suffix, "text")


def test_the_settings_of_the_composed_gateways_are_settings(tmp_path: Path, compose: Any) -> None:
    gateway = compose["services"]["gateway"]
    assert gateway["env_file"] == "clew.env"
    given = {**env_file(), **gateway["environment"]}
    environ = {name: _FILLED.sub(r"\1", value) for name, value in given.items()}
    settings = load_settings(home=tmp_path, flags={}, environ=environ)
    assert settings.warnings == ()
    settings.api.require_token_beyond_loopback()
    assert settings.store.url.startswith("postgresql://")
    assert settings.lease.duration.total_seconds() == 15


def test_the_balancer_knows_as_many_gateways_as_there_are_and_asks_whether_they_are_ready(
    compose: Any,
) -> None:
    config = text("haproxy.cfg")
    replicas = compose["services"]["gateway"]["deploy"]["replicas"]
    port = compose["services"]["gateway"]["environment"]["CLEW_API__PORT"]
    templates = re.findall(r"server-template gateway (\d+) gateway:(\d+) ", config)
    assert templates == [(str(replicas), port)] * config.count("\nbackend ")
    assert config.count("default-server check") == len(templates)
    assert "option httpchk GET /readyz" in config
    assert "/readyz" in PUBLIC_PATHS
    (published,) = compose["services"]["balancer"]["ports"]
    assert published.endswith(re.search(r"bind :(\d+)", config)[1])  # pyright: ignore[reportOptionalSubscript]


def test_the_image_is_made_of_files_that_are_there(compose: Any) -> None:
    build = compose["services"]["gateway"]["build"]
    recipe = (FOLDER / build["context"] / build["dockerfile"]).read_text(encoding="utf-8")
    copied = re.findall(r"^COPY (.+) \S+$", recipe, re.MULTILINE)
    assert copied
    assert [name for line in copied for name in line.split() if not (ROOT / name).exists()] == []


def test_the_unit_starts_a_gateway_with_settings_that_are_settings(tmp_path: Path) -> None:
    # A key may come more than once.
    unit = configparser.RawConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    unit.read_string(text("clew@.service"))
    assert unit["Service"]["ExecStart"].split()[1:] == ["serve"]
    found = dict(re.findall(r"^Environment=(CLEW_\w+)=(.+)$", text("clew@.service"), re.MULTILINE))
    environ = {name: value.replace("%i", "3") for name, value in found.items()}
    settings = load_settings(home=tmp_path, flags={}, environ={**env_file(), **environ})
    assert settings.api.port == 8423
    assert settings.warnings == ()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd here")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    # Under the name of an instance, and with a program that is there.
    program = shutil.which("true") or ""
    started = text("clew@.service").replace("/usr/local/bin/clew", program)
    (tmp_path / "clew@1.service").write_text(started)
    command = ["systemd-analyze", "verify", str(tmp_path / "clew@1.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if "clew@1" in line] == []
