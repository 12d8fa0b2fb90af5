"""Copying of skills into ``CLEW_HOME/skills``, from a folder or a repository; nothing is run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.errors import UsageError
from clew.features.skills.library import HOME, HOME_FOLDER
from clew.features.skills.scanning import (
    SKILL_FILE,
    Skill,
    SkillProblem,
    SkillSource,
    read_skill,
    scan_sources,
)
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

#: Seconds for a copy of a repository.
_PATIENCE: Final = 120.0
#: ``https://HOST/…``, ``ssh://…``, ``file:///…``, ``git@HOST:…``; ``ext::…`` would run a program.
_URL: Final = re.compile(r"(?:(?:https|ssh|git|file)://|[\w.-]+@[\w.-]+:)\S+")


class AddedSkills(Record):
    """The outcome of an addition."""

    added: Sequence[Skill]
    #: Folders that were left out, each with the reason.
    problems: Sequence[tuple[str, str]]


def add_skills(home: Path, place: str) -> AddedSkills:
    """
    Copy the skills of a folder or a repository; one that is there already stays as it is.

    :raises UsageError: if there is none
    """
    target = home.resolve() / HOME_FOLDER
    if _URL.fullmatch(place):
        with _clone(place) as folder:
            return _copy_all(folder, target)
    folder = Path(place).expanduser()
    if not folder.is_dir():
        raise UsageError(f"{place} is neither a folder nor the URL of a git repository")
    return _copy_all(folder.resolve(), target)


def _copy_all(folder: Path, target: Path) -> AddedSkills:
    found, problems = _find_skills(folder)
    if not found and not problems:
        raise UsageError(f"there is no folder with a {SKILL_FILE} in {folder}")
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    source = SkillSource(name=HOME, folder=target)
    known = scan_sources([source]).skills
    added: list[Skill] = []
    for skill in found:
        place = target / skill.name
        if place.exists() or skill.name in known:
            problems.append((skill.name, f"{target} has one of that name: remove it first"))
            continue
        _copy(skill, place)
        added.append(read_skill(source, place))
    return AddedSkills(added=added, problems=problems)


def _find_skills(folder: Path) -> tuple[list[Skill], list[tuple[str, str]]]:
    """Return the skills of a folder, which may be one itself, and what cannot be used."""
    if (folder / SKILL_FILE).exists():
        source = SkillSource(name=HOME, folder=folder.parent)
        return [read_skill(source, folder)], []
    shelf = scan_sources([SkillSource(name=HOME, folder=folder)])
    return list(shelf.skills.values()), [_describe(one, folder) for one in shelf.problems]


def _describe(problem: SkillProblem, folder: Path) -> tuple[str, str]:
    return os.path.relpath(problem.folder, folder), problem.reason


def _copy(skill: Skill, place: Path) -> None:
    """Copy a skill as a whole or not at all; links stay links."""
    temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=place.parent))
    try:
        made = temporary / skill.name
        shutil.copytree(skill.folder, made, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        made.rename(place)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _clone(url: str) -> Generator[Path]:
    """Copy a repository without running anything of it: no hooks, filters or submodules."""
    git = shutil.which("git")
    if git is None:
        raise UsageError("git is not installed")
    with tempfile.TemporaryDirectory(prefix="clew-skills-") as folder:
        place = Path(folder, _name_repository(url))
        options = ("core.hooksPath=/dev/null", "core.symlinks=true", "protocol.ext.allow=never")
        argv = [
            *(git, *(word for option in options for word in ("-c", option))),
            *(
                "clone",
                "--quiet",
                "--depth",
                "1",
                "--no-tags",
                "--template=",
                "--",
                url,
                str(place),
            ),
        ]
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        try:
            done = subprocess.run(
                argv,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise UsageError(f"{url} was not copied within {_PATIENCE:g} seconds") from None
        if done.returncode != 0:
            said = " ".join(done.stderr.split())[-300:] or f"exit code {done.returncode}"
            raise UsageError(f"{url} cannot be copied: {said}")
        shutil.rmtree(place / ".git", ignore_errors=True)
        yield place


def _name_repository(url: str) -> str:
    """Return the folder of a repository, which names a skill that it is itself."""
    name = re.split(r"[/:]", url.rstrip("/"))[-1].removesuffix(".git")
    return re.sub(r"[^\w.-]+", "-", name).strip(".") or "skill"
