"""Trust in skills: given by a person to the bytes of one, and void once a byte changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, LiteralString

from clew.errors import NotFound, UsageError
from clew.record import Record
from clew.store.records import RecordQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.features.skills.scanning import Skill
    from clew.store.contract import Tx

#: Characters of a digest by which a person names it: 128 bits. Of two texts that are made to have
#: the same shorter beginning, one could be shown and the other one trusted.
SHORT: Final = 32


class SkillTrust(Record):
    """The stored trust in a skill of a folder."""

    source: str
    name: str
    #: Of what a person trusts; ``None`` for nothing.
    digest: str | None
    decided_by: str | None
    decided_at: int | None
    text: str | None
    #: JSON: the digest of each file that is trusted.
    files: str | None
    #: Of what a session has found last.
    seen: str | None
    told: int


_COLUMNS: LiteralString = "source, name, digest, decided_by, decided_at, text, files, seen, told"
TRUST: Final = RecordQuery(SkillTrust, f"SELECT {_COLUMNS} FROM skills_skill", {})


def find_trust(t: Tx, skill: Skill) -> SkillTrust | None:
    """Return what is stored about a skill."""
    return TRUST.fetch_one(t, "WHERE source = $1 AND name = $2", skill.source.name, skill.name)


def list_trusted(t: Tx) -> dict[tuple[str, str], str]:
    """Return the trusted digest of each skill, by source and name."""
    rows = t.fetch_all("SELECT source, name, digest FROM skills_skill WHERE digest IS NOT NULL")
    return {(source, name): digest for source, name, digest in rows}


def trust(t: Tx, skill: Skill, *, digest: str, by: str) -> SkillTrust:
    """
    Trust a skill as it is; repeating it changes nothing.

    :raises UsageError: if its files have another digest than the one that was looked at
    """
    if len(digest) < SHORT or not skill.digest.startswith(digest.lower()):
        raise UsageError(
            f"the skill {skill.name} has changed, or {digest} is not its digest: look at it again"
        )
    files = {path: one.digest for path, one in skill.files.items()}
    t.execute(
        """
        INSERT INTO skills_skill
            (source, name, digest, decided_by, decided_at, text, files, seen, told)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $3, 1)
        ON CONFLICT (source, name) DO UPDATE SET
            digest = excluded.digest, decided_by = excluded.decided_by,
            decided_at = excluded.decided_at, text = excluded.text, files = excluded.files,
            seen = excluded.seen, told = 1
        """,
        skill.source.name,
        skill.name,
        skill.digest,
        by,
        t.now,
        skill.text,
        json.dumps(files, sort_keys=True),
    )
    found = find_trust(t, skill)
    assert found is not None
    return found


def untrust(t: Tx, name: str, *, by: str, source: str | None = None) -> None:
    """
    Take the trust in a skill back, in one folder or in all, also if its files are gone.

    :raises NotFound: if there is none that is trusted
    """
    changed = t.execute(
        """
        UPDATE skills_skill SET digest = NULL, text = NULL, files = NULL,
            decided_by = $3, decided_at = $4, told = 1
        WHERE name = $1 AND ($2 = '' OR source = $2) AND digest IS NOT NULL
        """,
        name,
        source or "",
        by,
        t.now,
    )
    if not changed:
        raise NotFound("trusted skill", name)


def has_news(t: Tx, found: Sequence[Skill]) -> bool:
    """Return whether a skill is not as a session has found it last."""
    rows = t.fetch_all("SELECT source, name, seen FROM skills_skill")
    known = {(source, name): seen for source, name, seen in rows}
    return any(known.get((one.source.name, one.name)) != one.digest for one in found)


def record_seen(t: Tx, found: Sequence[Skill]) -> None:
    """Record what a session has found; what is new or changed, and not trusted, is to be told."""
    known = {(one.source, one.name): one for one in TRUST.fetch_all(t, "ORDER BY source, name")}
    for skill in found:
        before = known.get((skill.source.name, skill.name))
        if before is not None and before.seen == skill.digest:
            continue
        is_trusted = before is not None and before.digest == skill.digest
        t.execute(
            """
            INSERT INTO skills_skill (source, name, seen, told) VALUES ($1, $2, $3, $4)
            ON CONFLICT (source, name) DO UPDATE SET seen = excluded.seen, told = excluded.told
            """,
            skill.source.name,
            skill.name,
            skill.digest,
            int(is_trusted),
        )


def list_untold(t: Tx) -> list[SkillTrust]:
    """Return the skills of which people are to be told that they are not trusted."""
    return TRUST.fetch_all(t, "WHERE told = 0 ORDER BY source, name")


def mark_told(t: Tx, told: Sequence[SkillTrust]) -> None:
    """Record that people were told."""
    for one in told:
        t.execute(
            "UPDATE skills_skill SET told = 1 WHERE source = $1 AND name = $2 AND seen = $3",
            one.source,
            one.name,
            one.seen,
        )
