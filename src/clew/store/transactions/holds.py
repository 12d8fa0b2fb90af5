"""Holds: until when a platform takes no calls, for a chat or a whole account."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.core.people import ChannelAccount
    from clew.store.contract import Tx

#: Stands for every chat of an account.
EVERY_CHAT = ""


def hold(t: Tx, account: ChannelAccount, chat: str, *, until: int) -> None:
    """Call a chat not before ``until`` (ms); a later time that was asked for before stays."""
    t.run(
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


def holds(t: Tx, account: ChannelAccount, *, after: int) -> dict[str, int]:
    """The chats of an account that are held beyond ``after`` (ms), each with its end."""
    found = t.all(
        """
        SELECT chat, held_until FROM hold
        WHERE channel = $1 AND account = $2 AND held_until > $3
        """,
        account.channel,
        account.account,
        after,
    )
    return {row[0]: row[1] for row in found}


def forget(t: Tx, account: ChannelAccount, *, before: int) -> int:
    """Remove what is over; how many."""
    return t.run(
        "DELETE FROM hold WHERE channel = $1 AND account = $2 AND held_until <= $3",
        account.channel,
        account.account,
        before,
    )
