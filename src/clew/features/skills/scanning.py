"""Skills in folders: each with the digest of its files, or the reason why it cannot be used."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from dataclasses import field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clew.features.skills.header import (
    BadSkill,
    SkillHeader,
    decode_skill,
    parse_header,
    split_skill,
)
from clew.record import Record
from clew.sandbox.errors import FileRefused
from clew.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SKILL_FILE: Final = "SKILL.md"
#: Bytes of a ``SKILL.md``.
MAX_TEXT: Final = 200_000
#: Files of a skill, and their bytes.
MAX_FILES, MAX_BYTES = 1_000, 20_000_000
#: Folders between that of all skills and that of one.
_MAX_DEPTH: Final = 4
#: Folders in one another within a skill.
_MAX_BELOW: Final = 20
#: Skills, and folders that are looked into, of one place.
_MAX_SKILLS, _MAX_FOLDERS = 2_000, 10_000
_LINKED: Final = "it is a symbolic link: copy the folder, or add it with clew skills add"
#: Seconds: a file that is younger may change again without a change of its dates.
_SETTLED: Final = 2.0


class SkillSource(Record):
    """A folder of skills."""

    #: As rows name it: ``home``, ``plugin NAME`` or ``workspace PATH``.
    name: str
    folder: Path
    #: The agent can write there.
    is_workspace: bool = False


class SkillFile(Record):
    """A file of a skill."""

    digest: str
    size: int
    is_executable: bool = False
    #: Where a symbolic link leads to.
    link: str | None = None


class Skill(Record):
    """A skill in a folder, as its files are now."""

    source: SkillSource
    folder: Path
    header: SkillHeader
    #: Of ``SKILL.md``, without the front matter.
    body: str
    #: ``SKILL.md`` as a whole.
    text: str
    #: Over names, modes and bytes of all files.
    digest: str
    files: Mapping[str, SkillFile] = field(default_factory=lambda: MappingProxyType({}), repr=False)

    @property
    def name(self) -> str:
        return self.header.name


class SkillProblem(Record):
    """A folder that cannot be used as a skill."""

    source: SkillSource
    folder: Path
    reason: str


class SkillShelf(Record):
    """The skills of the folders, as they were read."""

    #: By name, in their order.
    skills: Mapping[str, Skill]
    problems: Sequence[SkillProblem]


#: By folder: the state of its files, and what was read then.
_known: dict[Path, tuple[object, Skill]] = {}


def scan_sources(sources: Sequence[SkillSource]) -> SkillShelf:
    """Return what is in folders; of two skills with one name, the first is taken."""
    found: dict[str, Skill] = {}
    problems: list[SkillProblem] = []
    for source in sources:
        for one in _scan_source(source):
            if isinstance(one, SkillProblem):
                problems.append(one)
            elif (other := found.setdefault(one.name, one)) is not one:
                reason = f"{other.folder} has the same name, {one.name}"
                problems.append(SkillProblem(source=source, folder=one.folder, reason=reason))
    ordered = {name: found[name] for name in sorted(found)}
    return SkillShelf(skills=MappingProxyType(ordered), problems=tuple(problems))


def _scan_source(source: SkillSource) -> Iterator[Skill | SkillProblem]:
    for number, found in enumerate(_walk(source)):
        if number >= _MAX_SKILLS:
            yield _problem(source, source.folder, f"it has more than {_MAX_SKILLS:,} skills")
            return
        yield found if isinstance(found, SkillProblem) else _read_safely(source, found)


def _walk(source: SkillSource) -> Iterator[Path | SkillProblem]:
    """Yield the folders with a ``SKILL.md``, in the order of names, and those not looked into."""
    waiting = [(source.folder, 0)]
    for _ in range(_MAX_FOLDERS):
        if not waiting:
            return
        folder, depth = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda one: one.name)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield _problem(source, folder, f"it cannot be opened: {error.strerror}")
            continue
        if depth and any(one.name == SKILL_FILE for one in entries):
            yield folder
            continue
        yield from (_problem(source, Path(one), _LINKED) for one in entries if _is_linked(one))
        if not all(is_text(one.name) for one in entries):
            yield _problem(source, folder, "it holds a name that is not UTF-8, which is left out")
        if depth <= _MAX_DEPTH:
            inner = filter(_may_hold_skills, reversed(entries))
            waiting += [(Path(one), depth + 1) for one in inner]
    yield _problem(source, source.folder, f"it has more than {_MAX_FOLDERS:,} folders")


def _is_linked(entry: os.DirEntry[str]) -> bool:
    """Return whether it is a link to a skill; most links lead nowhere near one."""
    return is_text(entry.name) and entry.is_symlink() and Path(entry, SKILL_FILE).is_file()


def _may_hold_skills(entry: os.DirEntry[str]) -> bool:
    usable = not entry.name.startswith(".") and is_text(entry.name)
    return usable and entry.is_dir(follow_symlinks=False)


def is_text(name: str) -> bool:
    """Return whether a name of a file is UTF-8, so that it can be stored and told."""
    return not any("\ud800" <= one <= "\udfff" for one in name)


def _problem(source: SkillSource, folder: Path, reason: str) -> SkillProblem:
    return SkillProblem(source=source, folder=folder, reason=reason)


def _read_safely(source: SkillSource, folder: Path) -> Skill | SkillProblem:
    try:
        return _read_cached(source, folder)
    except (BadSkill, FileRefused) as error:
        return _problem(source, folder, str(error))
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return _problem(source, folder, f"it cannot be read: {error.strerror}{where}")


def _read_cached(source: SkillSource, folder: Path) -> Skill:
    states = _list_states(folder)
    key = tuple(
        (path, one.st_mode, one.st_size, one.st_ino, one.st_mtime_ns, one.st_ctime_ns)
        for path, one in states.items()
    )
    known = _known.get(folder)
    if known is not None and known[0] == key and known[1].source == source:
        return known[1]
    newest = max((one.st_ctime for one in states.values()), default=0.0)
    skill = read_skill(source, folder, states)
    if newest < time.time() - _SETTLED:
        _known[folder] = key, skill
    else:
        _known.pop(folder, None)
    return skill


def read_skill(
    source: SkillSource, folder: Path, states: Mapping[str, os.stat_result] | None = None
) -> Skill:
    """
    Read a skill from its folder.

    :raises BadSkill: if it cannot be used
    :raises FileRefused: if a file of it cannot be read
    """
    states = _list_states(folder) if states is None else states
    _check_sizes(states)
    workspace = Workspace(folder)
    content = workspace.read_file(SKILL_FILE, limit=MAX_TEXT)
    text = decode_skill(content)
    parts = split_skill(text)
    header = parse_header(parts, folder=folder.name)
    files = {path: _read_file(workspace, path, one) for path, one in states.items()}
    if files[SKILL_FILE].digest != _hash(content):
        raise BadSkill("it is being changed")
    return Skill(
        source=source,
        folder=folder,
        header=header,
        body=parts.body,
        text=text,
        digest=compute_digest(files),
        files=MappingProxyType(files),
    )


def compute_digest(files: Mapping[str, SkillFile]) -> str:
    """Return the digest over names, modes and bytes of files."""
    total = hashlib.sha256(b"clew skill 1\n")
    for path in sorted(files):
        one = files[path]
        mode = "l" if one.link is not None else "x" if one.is_executable else "-"
        total.update(f"{mode} {one.size} {one.digest} ".encode())
        total.update(os.fsencode(path) + b"\0")
    return total.hexdigest()


def _list_states(folder: Path) -> dict[str, os.stat_result]:
    return dict(islice(_list_files(folder), MAX_FILES + 1))


def _list_files(folder: Path, below: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """Yield all that is in the folder of a skill, folders excepted, in the order of names."""
    if below.count("/") > _MAX_BELOW:
        raise BadSkill(f"it has folders in more than {_MAX_BELOW} others")
    for entry in sorted(os.scandir(folder / below), key=lambda one: one.name):
        path = f"{below}{entry.name}"
        if not is_text(path):
            raise BadSkill(f"the name of a file is not UTF-8: {path!r}")
        state = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(state.st_mode):
            yield from _list_files(folder, f"{path}/")
        else:
            yield path, state


def _check_sizes(states: Mapping[str, os.stat_result]) -> None:
    text = states.get(SKILL_FILE)
    if text is None or not stat.S_ISREG(text.st_mode):
        raise BadSkill("SKILL.md is not a file")
    if text.st_size > MAX_TEXT:
        raise BadSkill(f"SKILL.md has {text.st_size:,} bytes, and {MAX_TEXT:,} are allowed")
    if len(states) > MAX_FILES:
        raise BadSkill(f"it has more than {MAX_FILES:,} files")
    if (size := sum(one.st_size for one in states.values())) > MAX_BYTES:
        raise BadSkill(f"its files have {size:,} bytes, and {MAX_BYTES:,} are allowed")


def _read_file(workspace: Workspace, path: str, state: os.stat_result) -> SkillFile:
    if stat.S_ISLNK(state.st_mode):
        return _read_link(workspace.root, path)
    if not stat.S_ISREG(state.st_mode):
        raise BadSkill(f"{path!r} is not a file")
    content = workspace.read_file(path, limit=MAX_BYTES)
    executable = bool(state.st_mode & 0o111)
    return SkillFile(digest=_hash(content), size=len(content), is_executable=executable)


def _read_link(folder: Path, path: str) -> SkillFile:
    target = os.readlink(folder / path)  # noqa: PTH115  (its text, as it is)
    actual, root = Path(os.path.realpath(folder / path)), Path(os.path.realpath(folder))
    if not actual.is_relative_to(root):
        raise BadSkill(f"the symbolic link {path!r} leads out of its folder")
    return SkillFile(digest=_hash(os.fsencode(target)), size=0, link=target)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
