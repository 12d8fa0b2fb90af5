"""Skills: what people trust is used, what they do not trust the model never sees."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from clew.cli.entry_point import run_command
from clew.features.skills.library import list_sources, load_library
from tests.features.skill_folders import (
    make_skill,
    write_broken,
    write_odd,
    write_published,
    write_skill,
)
from tests.features.skills_world import open_skills

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from clew.features.skills.library import SkillLibrary
    from tests.features.skills_world import SkillsWorld


async def load(world: SkillsWorld) -> SkillLibrary:
    return await load_library(world.store, list_sources(world.settings, "local"))


def run(home: Path, capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    assert run_command(["--home", str(home), "skills", *args]) == code
    return capsys.readouterr().out


async def test_folders_of_other_programs_load_as_they_are_and_say_what_they_need(
    tmp_path: Path, store_url: str
) -> None:
    async with open_skills(tmp_path, store_url) as world:
        write_published(world.folder)
        listed = await world.command("/skills")
        assert [line.split(" ")[0] for line in listed.splitlines()[:3]] == [
            "arxiv", "pdf-forms", "weather",
        ]  # fmt: skip
        shown = await world.command("/skills pdf-forms")
        for part in (
            "scripts: scripts/fields.py",
            "hosts: forms.example.org",
            "tools: Read, Bash(pdftotext:*), NotebookEdit",
            "allowed-tools: there is no tool NotebookEdit here",
            "Needs poppler",
        ):
            assert part in shown
        assert "the program no-such-program-here is not" in await world.command("/skills arxiv")
        weather = await world.command("/skills weather")
        assert "the program no-such-a or no-such-b is not installed" in weather
        assert "NO_SUCH_KEY" in weather
        assert "read these lines: SKILL.md:17: curl wttr.in/London" in weather
        await world.check()


async def test_what_cannot_be_used_is_named_with_its_reason_and_the_rest_loads(
    tmp_path: Path,
) -> None:
    async with open_skills(tmp_path, "sqlite:///clew.db") as world:
        write_odd(world.folder)
        (tmp_path / "outside").mkdir()
        reasons = write_broken(world.folder, tmp_path / "outside")
        shelf = (await load(world)).shelf
        assert [*shelf.skills] == [
            "colon", "deep", "mark", "plain", "title-case", "untold", "windows",
        ]  # fmt: skip
        assert shelf.skills["untold"].header.description == "Its first paragraph."
        assert shelf.skills["windows"].body == "Do it."
        found = {one.folder.name: one.reason for one in shelf.problems}
        assert found.keys() == reasons.keys()
        assert [name for name, part in reasons.items() if part not in found[name]] == []


async def test_trust_is_given_to_what_was_shown_and_ends_with_any_change(
    tmp_path: Path, store_url: str
) -> None:
    async with open_skills(tmp_path, store_url) as world:
        write_published(world.folder)
        assert "pdf-forms is trusted" in await world.trust("pdf-forms")
        script = world.folder / "pdf-forms" / "scripts" / "fields.py"
        script.write_text("print('Fields')\n", encoding="utf-8")
        changed = await world.command("/skills pdf-forms")
        assert "(changed)" in changed
        assert "changed since it was trusted: changed: scripts/fields.py" in changed
        old = (await load(world)).trusted_digests["home", "pdf-forms"]
        assert "look at it again" in await world.command(f"/skills trust pdf-forms {old[:12]}")
        script.write_text("print('fields')\n", encoding="utf-8")
        assert (await load(world)).is_trusted((await load(world)).get("pdf-forms"))
        script.chmod(0o755)
        assert [one.name for one in (await load(world)).trusted] == []
        script.chmod(0o644)
        await world.command("/skills untrust pdf-forms")
        assert "pdf-forms (new)" in await world.command("/skills")


def test_a_repository_is_copied_without_running_or_trusting_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, origin = tmp_path / "home", tmp_path / "origin"
    write_published(origin)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(origin))
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "Skills")):
        subprocess.run([*git, *words], check=True)
    said = run(home, capsys, "add", f"file://{origin}")
    assert "arxiv added, not trusted: clew skills trust arxiv" in said
    assert run(home, capsys, "trust", "weather", "--yes").endswith("weather is trusted\n")
    listed = json.loads(run(home, capsys, "list", "--json"))
    states = {one["name"]: one["state"] for one in listed["items"]}
    assert states == {"arxiv": "new", "pdf-forms": "new", "weather": "trusted"}
    write_skill(tmp_path / "more" / "own", make_skill("own", "One folder"))
    assert "own added" in run(home, capsys, "add", str(tmp_path / "more" / "own"))
    assert "own" not in run(home, capsys, "add", str(tmp_path / "more"), code=1)
    assert run(home, capsys, "add", "ext::sh -c id", code=2) == ""
