"""Removal of old versions of files from the store, by age and by size."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from clew.features.files.changes import VERSION_TYPE, name_version

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.features.files.settings import FilesSettings
    from clew.plugin import FeatureContext
    from clew.store.contract import Tx

#: Changes in one transaction.
_SLICE: Final = 50
_MEGABYTE: Final = 1024 * 1024


async def prune_versions(services: FeatureContext, settings: FilesSettings) -> int:
    """Remove changes that are too old, or too many, with their versions; return how many."""
    age = timedelta(days=settings.keep_days) // timedelta(milliseconds=1)
    count = 0
    while removed := await services.store.write(
        remove_changes, age=age, limit=settings.keep_size * _MEGABYTE
    ):
        count += removed
    return count


def remove_changes(t: Tx, *, age: int, limit: int) -> int:
    """Remove the oldest changes that are older than ``age`` ms, or too many; return how many."""
    excess = measure_versions(t) - limit
    oldest = t.fetch_all(
        """
        SELECT n, conversation, before_sha256, after_sha256, created_at FROM files_change c
        WHERE NOT EXISTS (SELECT 1 FROM turn r WHERE r.id = c.turn AND r.state <> 'done')
        ORDER BY n LIMIT $1
        """,
        _SLICE,
    )
    removed = 0
    for n, conversation, before, after, created_at in oldest:
        if excess <= 0 and created_at > t.now - age:
            break
        t.execute("DELETE FROM files_change WHERE n = $1", n)
        excess -= sum(_remove_version(t, conversation, one) for one in {before, after} - {None})
        removed += 1
    return removed


def measure_versions(t: Tx) -> int:
    """Return the bytes of all versions."""
    return int(
        t.fetch_value(
            """
            SELECT COALESCE(sum(size), 0) FROM blob WHERE sha256 IN (
                SELECT sha256 FROM attachment WHERE media_type = $1
            )
            """,
            VERSION_TYPE,
        )
    )


def _remove_version(t: Tx, conversation: ConversationId, digest: str) -> int:
    """Remove a version that no change of the conversation needs; return the bytes saved."""
    if t.exists(
        """
        SELECT 1 FROM files_change
        WHERE conversation = $1 AND (before_sha256 = $2 OR after_sha256 = $2) LIMIT 1
        """,
        conversation,
        digest,
    ):
        return 0
    t.execute("DELETE FROM attachment WHERE id = $1", name_version(conversation, digest))
    key = bytes.fromhex(digest)
    size = t.fetch_value("SELECT size FROM blob WHERE sha256 = $1", key)
    removed = t.execute(
        """
        DELETE FROM blob WHERE sha256 = $1
          AND NOT EXISTS (SELECT 1 FROM attachment a WHERE a.sha256 = blob.sha256)
        """,
        key,
    )
    return int(size or 0) if removed else 0
