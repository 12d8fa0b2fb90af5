"""The container recipe: its files, and a gateway under the conditions that they make."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from clew.config import load_settings
from tests.acceptance.program import CLEW, Clew, until
from tests.sandboxes import needs_bubblewrap, needs_landlock

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "container"
RECIPE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def service() -> Any:
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
    return compose["services"]["gateway"]


def test_the_page_shows_the_files_of_the_container() -> None:
    page = (ROOT / "docs" / "how-to" / "run-around-the-clock.md").read_text(encoding="utf-8")
    assert f"```yaml\n{(FOLDER / 'compose.yaml').read_text(encoding='utf-8')}```" in page
    assert "(../../deploy/container/Dockerfile)" in page


def test_the_container_is_not_root_cannot_write_its_root_and_stops_in_time(
    tmp_path: Path, service: Any
) -> None:
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert re.findall(r"^USER (.+)$", RECIPE, re.MULTILINE) == ["clew"]
    environ = {
        name: re.sub(r"\$\{(\w+)[^}]*\}", r"\1", value)
        for name, value in service["environment"].items()
    }
    settings = load_settings(home=tmp_path, flags={}, environ=environ)
    settings.api.require_token_beyond_loopback()
    assert settings.warnings == ()
    assert f"EXPOSE {settings.api.port}" in RECIPE
    build = service["build"]
    assert (FOLDER / build["context"] / build["dockerfile"]).samefile(FOLDER / "Dockerfile")


def contain(home: Path, *argv: str) -> Sequence[str]:
    """A command under the same conditions: another user, no rights, no namespaces, no writing."""
    return (
        *("bwrap", "--die-with-parent", "--unshare-user", "--disable-userns"),
        *("--uid", "10001", "--gid", "10001"),
        *("--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *("--tmpfs", "/run", "--tmpfs", "/tmp", "--ro-bind", str(ROOT), str(ROOT)),
        *("--bind", str(home), str(home), *argv),
    )


def has_needed_options() -> bool:
    program = shutil.which("bwrap")
    if program is None:
        return False
    told = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    return "--disable-userns" in told.stdout + told.stderr


@needs_bubblewrap
@needs_landlock
@pytest.mark.skipif(not has_needed_options(), reason="this bubblewrap cannot forbid namespaces")
def test_a_gateway_works_in_it_and_its_commands_run_in_the_next_sandbox(clew: Clew) -> None:
    clew.home.mkdir(parents=True, mode=0o700)
    check = json.loads(re.findall(r"^    CMD (\[.+\])$", RECIPE, re.MULTILINE)[0])
    assert check[0] == "clew"
    environ = {**clew.environ, "CLEW_API__PORT": "0"}
    with subprocess.Popen(
        contain(clew.home, CLEW, "serve"), env=environ, stdout=subprocess.PIPE, text=True
    ) as gateway:
        try:
            assert gateway.stdout is not None
            assert gateway.stdout.readline().startswith("ready ")

            def is_healthy() -> bool:
                argv = contain(clew.home, CLEW, *check[1:])
                return subprocess.run(argv, env=environ, capture_output=True).returncode == 0  # noqa: PLW1510

            until(is_healthy)
            argv = contain(clew.home, CLEW, "doctor", "--offline", "--json")
            told = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
        finally:
            gateway.kill()
    findings = {each["what"]: each for each in json.loads(told.stdout)["findings"]}
    assert findings["sandbox"]["level"] == "ok", findings["sandbox"]
    assert findings["sandbox"]["detail"].startswith("Landlock at level work: ")
