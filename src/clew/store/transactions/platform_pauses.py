"""Pauses imposed by a platform, for a chat or a whole account."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.access import ChannelAccount
    from clew.store.contract import Tx


def pause_until(t: Tx, account: ChannelAccount, chat: str, *, until: int) -> None:
    """Pause calls to a chat until a time (ms); a later stored time stays."""
    t.execute(
        """
        INSERT INTO hold (channel, account, chat, held_until) VALUES ($1, $2, $3, $4)
        ON CONFLICT (channel, account, chat) DO UPDATE SET held_until = excluded.held_until
        WHERE hold.held_until < excluded.held_until
        """,
        account.channel,
        account.account,
        chat,
        until,
    )


def list_pauses(t: Tx, account: ChannelAccount, *, after: int) -> dict[str, int]:
    """Return the chats of an account paused beyond ``after`` (ms), each with its end (ms)."""
    return t.fetch_map(
        """
        SELECT chat, held_until FROM hold
        WHERE channel = $1 AND account = $2 AND held_until > $3
        """,
        account.channel,
        account.account,
        after,
    )


def delete_expired_pauses(t: Tx, account: ChannelAccount, *, before: int) -> int:
    """Delete the pauses that end at or before ``before`` (ms), and return their count."""
    return t.execute(
        "DELETE FROM hold WHERE channel = $1 AND account = $2 AND held_until <= $3",
        account.channel,
        account.account,
        before,
    )
