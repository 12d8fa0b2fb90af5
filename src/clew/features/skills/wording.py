"""Skills in words, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.features.skills.review import MAX_FILES
from clew.features.skills.trust import SHORT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clew.features.skills.library import SkillLibrary
    from clew.features.skills.review import SkillReview
    from clew.features.skills.trust import SkillTrust

NONE_YET = "No skills yet: put folders with a SKILL.md into CLEW_HOME/skills, or clew skills add."
#: Skills that one notice names.
_MAX_NAMED = 10


def format_review(review: SkillReview) -> str:
    """Return everything that a person looks at before a skill is trusted."""
    skill = review.skill
    lines = [
        f"{skill.name} ({review.state}): {skill.header.description}",
        f"folder: {skill.folder}",
        *_format_list("changed since it was trusted", review.changes),
        *_format_list("files", _describe_files(review)),
        *_format_list("scripts", review.scripts),
        *_format_list("hosts", review.hosts),
        _describe_tools(review),
        *_format_list("read these lines", review.notable),
        *_format_list("remarks", review.remarks),
        *([review.difference] if review.difference else []),
        _describe_decision(review),
    ]
    return "\n".join(line for line in lines if line)


def _describe_files(review: SkillReview) -> list[str]:
    found = [f"{path} ({one.size:,} bytes)" for path, one in review.skill.files.items()]
    more = [f"… {len(found) - MAX_FILES} more"] if len(found) > MAX_FILES else []
    return [*found[:MAX_FILES], *more]


def _describe_tools(review: SkillReview) -> str:
    allowed = review.skill.header.allowed_tools
    if allowed is None:
        return ""
    named = ", ".join(one.text for one in allowed) or "none"
    return f"tools: {named}; while it is loaded, every other call asks"


def _describe_decision(review: SkillReview) -> str:
    before = review.before
    decided = f", by {before.decided_by}" if before is not None and before.decided_by else ""
    return f"digest: {review.skill.digest[:SHORT]} ({review.state}{decided})"


def _format_list(title: str, items: Sequence[str]) -> list[str]:
    if not items:
        return []
    if len(items) == 1:
        return [f"{title}: {items[0]}"]
    return [f"{title}:", *(f"  {one}" for one in items)]


def format_library(library: SkillLibrary, *, loaded: Iterable[str] = ()) -> str:
    """Return the skills of a scope as a list."""
    shelf, active = library.shelf, set(loaded)
    if not shelf.skills and not shelf.problems:
        return NONE_YET
    lines = [
        f"{one.name} ({library.describe_state(one)}{', loaded here' if one.name in active else ''})"
        f": {one.header.description[:200]}"
        for one in shelf.skills.values()
    ]
    lines += [f"{one.folder.name} (cannot be used): {one.reason}" for one in shelf.problems]
    if any(not library.is_trusted(one) for one in shelf.skills.values()):
        lines.append("/skills trust NAME shows what one holds, and trusts it.")
    return "\n".join(lines)


def format_untold(untold: Sequence[SkillTrust]) -> str:
    """Return the notice that skills are not trusted."""
    changed = [one.name for one in untold if one.digest is not None]
    new = [one.name for one in untold if one.digest is None]
    parts = [
        *_format_named("changed since trusted, and out of use", changed),
        *_format_named("new, and not in use", new),
    ]
    return f"Skills {'; '.join(parts)}. /skills trust NAME shows what one holds, and trusts it."


def _format_named(what: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return [f"{what}: {', '.join(names[:_MAX_NAMED])}{more}"]
