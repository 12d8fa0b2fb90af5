"""The head of a ``SKILL.md``: its front matter, as Claude, Hermes, OpenClaw and others write it."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final, cast

from clew.errors import UsageError
from clew.features.skills.tool_names import AllowedTool, parse_allowed_tools
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Bytes of a front matter.
MAX_HEADER: Final = 16_384
#: Characters of a name and of a description.
MAX_NAME, MAX_DESCRIPTION = 64, 1024
_FENCE: Final = re.compile(r"^---[ \t]*$", re.MULTILINE)
#: A line whose value YAML reads as a mapping, though it is meant as a text: ``key: a: b``.
_PLAIN_VALUE: Final = re.compile(r"^([A-Za-z][\w-]*):[ \t]+([^\s\"'\[{|>&*!#].*)$")
#: Names of systems, as skills write them, and as Python does.
_SYSTEMS: Final = {
    **dict.fromkeys(("macos", "darwin", "osx", "mac"), "darwin"),
    **dict.fromkeys(("windows", "win32", "win"), "win32"),
    "linux": "linux",
}


class BadSkill(UsageError):
    """A skill that cannot be used."""


class SkillHeader(Record):
    """Front matter of a skill."""

    name: str
    description: str
    #: ``None``: it does not limit what runs without asking.
    allowed_tools: tuple[AllowedTool, ...] | None = None
    #: Programs that it needs; of a tuple with several, one is enough.
    programs: tuple[tuple[str, ...], ...] = ()
    #: Environment variables that it needs.
    variables: tuple[str, ...] = ()
    #: As in ``sys.platform``; empty for all.
    systems: tuple[str, ...] = ()
    compatibility: str | None = None
    #: The model is not told of it, and loads it only by its name.
    is_hidden: bool = False
    #: What was mended while it was read.
    remarks: tuple[str, ...] = ()


class SkillText(Record):
    """The two parts of a ``SKILL.md``."""

    header: str
    body: str


def decode_skill(content: bytes) -> str:
    """
    Return the text of a ``SKILL.md``, without a byte order mark, its lines ended by LF.

    :raises BadSkill: if it is not text in UTF-8
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadSkill(f"SKILL.md is not UTF-8 (byte {error.start})") from None
    if "\0" in text:
        raise BadSkill("SKILL.md holds the character NUL")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def split_skill(text: str) -> SkillText:
    """
    Split a ``SKILL.md`` into front matter and body.

    :raises BadSkill: if it has no front matter, or one without an end
    """
    text = text.lstrip("\n")
    begin = _FENCE.match(text)
    if begin is None:
        raise BadSkill("SKILL.md has no front matter: its first line must be ---")
    end = _FENCE.search(text, begin.end() + 1)
    if end is None:
        raise BadSkill("the front matter of SKILL.md has no end: a line --- is missing")
    header = text[begin.end() : end.start()]
    if len(header.encode()) > MAX_HEADER:
        raise BadSkill(f"the front matter of SKILL.md has more than {MAX_HEADER:,} bytes")
    return SkillText(header=header, body=text[end.end() :].strip("\n"))


def parse_header(text: SkillText, *, folder: str) -> SkillHeader:
    """
    Return what a skill in a folder of this name says about itself.

    :raises BadSkill: if that cannot be read
    """
    remarks: list[str] = []
    fields = _load_yaml(text.header, remarks)
    name = _find_name(fields, folder, remarks)
    allowed = fields.get("allowed-tools", fields.get("allowed_tools"))
    more = [*_find_metadata(fields)]
    return SkillHeader(
        name=name,
        description=_find_description(fields, text.body, remarks),
        allowed_tools=None if allowed is None else parse_allowed_tools(allowed),
        programs=tuple(program for one in more for program in _find_programs(one)),
        variables=tuple(variable for one in more for variable in _find_variables(one)),
        systems=_find_systems(more),
        compatibility=_read_text(fields.get("compatibility")) or None,
        is_hidden=_read_text(fields.get("disable-model-invocation")).lower() == "true",
        remarks=tuple(remarks),
    )


def normalize_name(name: str) -> str:
    """Return a name as it is compared and typed: ``Web Search`` is ``web-search``."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return re.sub(r"[^\w.]+", "-", plain).strip("-._")[:MAX_NAME]


def _load_yaml(header: str, remarks: list[str]) -> Mapping[str, Any]:
    import yaml  # noqa: PLC0415  (only where there are skills)

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        found: object = yaml.load(header, Loader=loader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        try:
            found = yaml.load(_quote_values(header), Loader=loader)
        except (yaml.YAMLError, RecursionError, ValueError):
            raise BadSkill(f"the front matter is not YAML: {_describe_error(error)}") from None
        remarks.append("a value with a colon is not quoted")
    if not isinstance(found, dict):
        raise BadSkill("the front matter is not a list of fields, as name: …")
    return cast("dict[str, Any]", found)


def _quote_values(header: str) -> str:
    """Return a front matter whose plain values are quoted."""
    return "\n".join(
        _PLAIN_VALUE.sub(_quote_value, line) if _PLAIN_VALUE.match(line) else line
        for line in header.split("\n")
    )


def _quote_value(found: re.Match[str]) -> str:
    value = found[2].rstrip().replace("'", "''")
    return f"{found[1]}: '{value}'"


def _describe_error(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    said = getattr(error, "problem", None) or str(error) or type(error).__name__
    where = f" (line {mark.line + 1})" if mark is not None else ""
    return f"{' '.join(str(said).split())[:200]}{where}"


def _find_name(fields: Mapping[str, Any], folder: str, remarks: list[str]) -> str:
    given = _read_text(fields.get("name"))
    name = normalize_name(given or folder)
    if not name:
        raise BadSkill("it has no name")
    if not given:
        remarks.append("it has no name: that of its folder is taken")
    elif name != given:
        remarks.append(f"its name is read as {name}")
    if name != normalize_name(folder):
        remarks.append(f"its folder has another name: {folder[:MAX_NAME]}")
    return name


def _find_description(fields: Mapping[str, Any], body: str, remarks: list[str]) -> str:
    described = _read_text(fields.get("description"))
    if not described:
        paragraphs = (part for part in body.split("\n\n") if part.strip())
        plain = (part for part in paragraphs if not part.lstrip().startswith("#"))
        described = _read_text(next(plain, ""))
        if not described:
            raise BadSkill("it has no description")
        remarks.append("it has no description: its first paragraph is taken")
    if len(described) > MAX_DESCRIPTION:
        remarks.append(f"its description is longer than {MAX_DESCRIPTION:,} characters")
    return described[:MAX_DESCRIPTION]


def _find_metadata(fields: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the tables that name requirements: the top, and those of single programs."""
    yield fields
    below = fields.get("metadata")
    if isinstance(below, dict):
        for one in cast("dict[str, Any]", below).values():
            if isinstance(one, dict):
                yield cast("dict[str, Any]", one)


def _find_programs(fields: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    requires = _read_table(fields.get("requires"))
    yield from ((one,) for one in _read_texts(requires.get("bins")))
    yield from (
        (one,) for one in _read_texts(_read_table(fields.get("prerequisites")).get("commands"))
    )
    if several := _read_texts(requires.get("anyBins")):
        yield tuple(several)


def _find_variables(fields: Mapping[str, Any]) -> Iterator[str]:
    yield from _read_texts(_read_table(fields.get("requires")).get("env"))
    yield from _read_texts(_read_table(fields.get("prerequisites")).get("env_vars"))
    named = fields.get("required_environment_variables")
    for one in cast("list[object]", named) if isinstance(named, list) else ():
        yield _read_text(one) or _read_text(_read_table(one).get("name"))


def _find_systems(tables: list[Mapping[str, Any]]) -> tuple[str, ...]:
    named = [
        one
        for table in tables
        for key in ("platforms", "os")
        for one in _read_texts(table.get(key))
    ]
    return tuple(dict.fromkeys(_SYSTEMS.get(one.lower(), one.lower()) for one in named))


def _read_table(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _read_texts(value: object) -> list[str]:
    """Return a list of texts, also where it is one text, or a text with commas."""
    if isinstance(value, str):
        return [one for one in map(str.strip, value.strip("[] ").split(",")) if one]
    found = cast("list[object]", value) if isinstance(value, list) else []
    return [text for one in found if (text := _read_text(one))]


def _read_text(value: object) -> str:
    """Return a text as one line without control characters; empty for anything else."""
    if not isinstance(value, str):
        return ""
    return " ".join("".join(one if one.isprintable() else " " for one in value).split())
