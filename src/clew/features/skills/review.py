"""What a person looks at before a skill is trusted: files, scripts, hosts, tools, and changes."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import shutil
from typing import TYPE_CHECKING, Any, Final

from clew.features.skills.library import fits_system
from clew.features.skills.scanning import SKILL_FILE
from clew.record import Record
from clew.sandbox.errors import FileRefused
from clew.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from clew.features.skills.scanning import Skill
    from clew.features.skills.trust import SkillTrust

#: Bytes of a file in which hosts and lines are looked for.
_MAX_READ: Final = 1_000_000
#: Hosts, lines and files that are listed, and characters of a line.
MAX_HOSTS, MAX_LINES, MAX_FILES, MAX_LINE = 30, 20, 60, 160
#: Lines of the difference to what was trusted.
_MAX_DIFF: Final = 80
_HOST: Final = re.compile(r"\b(?:https?|wss?|ftp|git|ssh)://(?:[^\s/@'\"]*@)?([A-Za-z0-9.-]+)")
_SCRIPTS: Final = (
    ".sh",
    ".bash",
    ".zsh",
    ".py",
    ".js",
    ".ts",
    ".rb",
    ".pl",
    ".php",
    ".ps1",
    ".bat",
)
#: Lines that a person should read: what they do is not what they say, or cannot be taken back.
_NOTABLE: Final = re.compile(
    r"""
    \|\s*(?:sudo\s+)?(?:env\s+)?(?:ba|z|da|k|fi)?sh\b
    | \|\s*(?:sudo\s+)?(?:python|perl|ruby|node)\d?\b
    | \b(?:ba|z|da)?sh\s+(?:-\w+\s+)?["']?(?:<\(|\$\(|`) | \beval\b | \bexec\s*\( | \biex\b
    | \bbase64\s+(?:-d|-D|--decode)\b | b64decode | fromCharCode | atob\( | xxd\s+-r
    | \\x[0-9a-f]{2}\\x
    | \bcurl\b | \bwget\b | \bInvoke-WebRequest\b | \bnc\s+-|/dev/tcp/
    | \.ssh\b | \.aws\b | id_rsa | \.env\b | /etc/passwd | keychain | wallet | \.netrc | clew\.db
    | \brm\s+-\w*[rf] | \bchmod\s+(?:\+x|777) | \bcrontab\b | \.bashrc | \bsudo\b | \bpassword\b
    | \bxattr\s+-\w*[dc] | \bosascript\b | \bnpx?\s+(?:-y|install) | \bpip3?\s+install\b
    | ignore\s+(?:all\s+|any\s+)?(?:previous|prior|earlier)\s+(?:instructions|rules)
    """,
    re.IGNORECASE | re.VERBOSE,
)


class SkillReview(Record):
    """A skill as a person looks at it."""

    skill: Skill
    state: str
    scripts: tuple[str, ...]
    hosts: tuple[str, ...]
    #: Lines that should be read, each with its place.
    notable: tuple[str, ...]
    #: What is not as the skill needs it, or was mended while it was read.
    remarks: tuple[str, ...]
    #: Against what was trusted: files that are new, changed or gone.
    changes: tuple[str, ...]
    #: Of ``SKILL.md``, against what was trusted.
    difference: str
    before: SkillTrust | None

    def as_dict(self) -> dict[str, Any]:
        """Return it as programs get it."""
        skill, before = self.skill, self.before
        return {
            "name": skill.name,
            "description": skill.header.description,
            "source": skill.source.name,
            "folder": str(skill.folder),
            "state": self.state,
            "digest": skill.digest,
            "files": list(skill.files),
            "scripts": list(self.scripts),
            "hosts": list(self.hosts),
            "allowed_tools": list_tool_texts(skill),
            "notable": list(self.notable),
            "remarks": list(self.remarks),
            "changes": list(self.changes),
            "difference": self.difference,
            "decided_by": before and before.decided_by,
        }


def list_tool_texts(skill: Skill) -> list[str] | None:
    """Return the tools that a skill lists, in its words; ``None`` if it lists none."""
    allowed = skill.header.allowed_tools
    return None if allowed is None else [one.text for one in allowed]


def review_skill(
    skill: Skill, state: str, before: SkillTrust | None, tools: Collection[str] = ()
) -> SkillReview:
    """Return a skill as a person looks at it; ``tools`` are the names of those there are."""
    hosts: dict[str, None] = {}
    notable: list[str] = []
    for path, text in _iter_texts(skill):
        hosts.update(dict.fromkeys(found.lower().strip(".") for found in _HOST.findall(text)))
        notable += [
            f"{path}:{number}: {_shorten(line)}"
            for number, line in enumerate(text.split("\n"), 1)
            if _NOTABLE.search(line)
        ]
    return SkillReview(
        skill=skill,
        state=state,
        scripts=tuple(
            path for path, one in skill.files.items() if _is_script(path, one.is_executable)
        ),
        hosts=tuple(sorted(hosts)[:MAX_HOSTS]),
        notable=tuple(notable[:MAX_LINES]),
        remarks=tuple(find_remarks(skill, tools)),
        changes=tuple(_list_changes(skill, before)),
        difference=_compare_texts(skill, before),
        before=before,
    )


def find_remarks(skill: Skill, tools: Collection[str] = ()) -> Iterator[str]:
    """Yield what a person should know who uses a skill here."""
    header = skill.header
    yield from header.remarks
    if not fits_system(skill):
        yield f"it is for {', '.join(header.systems)} only: the model is not told of it here"
    if header.is_hidden:
        yield "the model is not told of it, and loads it by its name only"
    for names in header.programs:
        if not any(map(shutil.which, names)):
            yield f"the program {' or '.join(names)} is not installed"
    for name in header.variables:
        if name not in os.environ:
            yield f"it needs the variable {name}: sandbox.secrets gives one to commands"
    if header.compatibility:
        yield f"compatibility: {header.compatibility[:300]}"
    for one in header.allowed_tools or ():
        if one.tool is None or (tools and one.tool not in tools):
            yield f"allowed-tools: there is no tool {one.text} here"


def _iter_texts(skill: Skill) -> Iterator[tuple[str, str]]:
    """Yield the files of a skill that are text, as they were when its digest was made."""
    workspace = Workspace(skill.folder)
    for path, one in skill.files.items():
        if one.link is not None or one.size > _MAX_READ:
            continue
        try:
            content = workspace.read_file(path, limit=_MAX_READ)
        except FileRefused:
            continue
        if hashlib.sha256(content).hexdigest() == one.digest and b"\0" not in content:
            yield path, content.decode("utf-8", "replace")


def _is_script(path: str, is_executable: bool) -> bool:
    return is_executable or path.lower().endswith(_SCRIPTS)


def _list_changes(skill: Skill, before: SkillTrust | None) -> Iterator[str]:
    if before is None or before.files is None or before.digest == skill.digest:
        return
    known: dict[str, str] = json.loads(before.files)
    for path in sorted({*known, *skill.files}):
        now = skill.files.get(path)
        if now is None:
            yield f"gone: {path}"
        elif path not in known:
            yield f"new: {path}"
        elif known[path] != now.digest:
            yield f"changed: {path}"
    if all(path in known and known[path] == one.digest for path, one in skill.files.items()) and (
        len(known) == len(skill.files)
    ):
        yield "changed: which files are programs"


def _compare_texts(skill: Skill, before: SkillTrust | None) -> str:
    """Return the difference of ``SKILL.md``; all of a new one is new."""
    if before is None or before.text is None or before.digest == skill.digest:
        return ""
    old, new = before.text.splitlines(), skill.text.splitlines()
    lines = list(difflib.unified_diff(old, new, f"a/{SKILL_FILE}", f"b/{SKILL_FILE}", lineterm=""))
    more = [f"… {len(lines) - _MAX_DIFF} more lines"] if len(lines) > _MAX_DIFF else []
    return "\n".join([*lines[:_MAX_DIFF], *more])


def _shorten(line: str) -> str:
    plain = "".join(one if one.isprintable() else " " for one in line.strip())
    return plain if len(plain) <= MAX_LINE else f"{plain[: MAX_LINE - 1]}…"
