"""
Errors that Clew raises on purpose.

::

    ClewError
    ├── UsageError                invalid request; nothing was changed
    │   ├── KeyReused
    │   ├── NotFound
    │   ├── SettingsError
    │   │   └── PortTaken
    │   ├── StoreNotEmpty
    │   └── TitleTaken
    ├── GatewayRunning            this home has one already: names the process
    ├── OperationRefused          the state changed first; nothing was changed
    │   ├── LeaseLost
    │   │   └── LeaseExpired
    │   ├── LeaseHeld
    │   ├── RotationConflict
    │   ├── SessionEnded
    │   ├── TurnRolledBack
    │   ├── TurnStopping
    │   └── InvalidTransition
    ├── CallOutcomeUnknown        a tool's call may have had its effect
    ├── ChannelError              a chat platform
    │   ├── NotSent               the call had no effect: safe to retry
    │   │   └── Throttled         … after a number of seconds
    │   ├── OutcomeUnknown        the call may have had its effect
    │   ├── NotDelivered          the platform rejects this message permanently
    │   ├── AccountInUse          another program uses the account
    │   └── AccountRefused        the platform rejects the token
    └── StoreError                the database
        ├── ConstraintViolated    a constraint of the schema rejected a write
        ├── StoreUnavailable      temporary: nothing was stored, try again
        │   └── SearchNotReady    the search index is being built or needs a rebuild
        ├── StoreFull             disk or quota
        ├── StoreDamaged          corrupt pages
        ├── StoreInUse            in use elsewhere: names the holder
        └── StoreUnusable         cannot be opened: says what to do
"""

from __future__ import annotations


class ClewError(Exception):
    """Base class of Clew's errors; the text is a sentence that a person can act on."""


class UsageError(ClewError):
    """Invalid request; nothing was changed."""


class KeyReused(UsageError):
    """Reuse of an idempotency key for another request."""

    def __init__(self) -> None:
        super().__init__(
            "this Idempotency-Key was used with another request: use a new key for a new request"
        )


class NotFound(UsageError):
    """Conversation, session, route or turn that does not exist."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"there is no {what} {name!r}")
        self.what, self.name = what, name


class SettingsError(UsageError):
    """Unknown settings or unusable values: one sentence each, in ``problems``."""

    def __init__(self, *problems: str) -> None:
        one = "\n  - ".join(problems)
        super().__init__(one if len(problems) == 1 else f"the settings are wrong:\n  - {one}")
        self.problems = problems


class PortTaken(SettingsError):
    """Configured port that another program uses."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"port {port} on {host} is in use by another program: stop it, or set api.port to "
            "another one"
        )
        self.host, self.port = host, port


class GatewayRunning(ClewError):
    """Home that a gateway already serves."""

    def __init__(self, home: str, *, pid: int, url: str) -> None:
        super().__init__(
            f"a gateway serves {home} already, as process {pid} at {url}: stop that one first "
            f"(kill {pid}), use it (clew), or give this one another home with --home"
        )
        self.home, self.pid, self.url = home, pid, url


class StoreNotEmpty(UsageError):
    """Target store that is not empty."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the store {name} is not empty")
        self.name = name


class TitleTaken(UsageError, ValueError):
    """Title already used by another conversation of the same scope."""

    def __init__(self, title: str) -> None:
        super().__init__(f"another conversation already has the title {title!r}")
        self.title = title


class OperationRefused(ClewError):
    """Operation overtaken by a change of state; nothing was changed."""


class LeaseLost(OperationRefused):
    """Loss of the lease: another owner took it over, or it expired."""

    def __init__(self, conversation: str, *, owner: str, fence: int) -> None:
        super().__init__(
            f"conversation {conversation}: owner {owner} lost its lease (fence {fence})"
        )
        self.conversation, self.owner, self.fence = conversation, owner, fence


class LeaseExpired(LeaseLost):
    """
    Expiry of a lease that could not be renewed while the store was unavailable.

    Possibly no other owner has taken it.
    """


class LeaseHeld(OperationRefused):
    """Lease held by another living owner."""

    def __init__(self, conversation: str, *, holder: str) -> None:
        super().__init__(f"conversation {conversation} is being written by owner {holder}")
        self.conversation, self.holder = conversation, holder


class RotationConflict(OperationRefused):
    """Head or last seq that is not the expected one."""

    def __init__(self, conversation: str, *, expected: str, head: str) -> None:
        super().__init__(f"conversation {conversation}: expected head {expected}, found {head}")
        self.conversation, self.expected, self.head = conversation, expected, head


class SessionEnded(OperationRefused):
    """Session that accepts no more entries; ``head`` is its successor."""

    def __init__(self, session: str, *, head: str) -> None:
        super().__init__(f"session {session} has ended; the head is {head}")
        self.session, self.head = session, head


class TurnRolledBack(OperationRefused):
    """Rollback of a turn by a message that came while it ran."""

    def __init__(self, turn: str) -> None:
        super().__init__(f"turn {turn} was taken back by a new message")
        self.turn = turn


class TurnStopping(OperationRefused):
    """Turn that was asked to stop and starts nothing more."""

    def __init__(self, turn: str) -> None:
        super().__init__(f"turn {turn} was asked to stop")
        self.turn = turn


class InvalidTransition(OperationRefused):
    """Transition that a life cycle does not allow."""

    def __init__(self, what: str, *, old: str, new: str) -> None:
        super().__init__(f"{what} cannot go from {old} to {new}")
        self.what, self.old, self.new = what, old, new


class CallOutcomeUnknown(ClewError):
    """Call of a tool that was broken off and may have had its effect; the model is told so."""


class ChannelError(ClewError):
    """Refusal or failure of a chat platform; the text never contains a secret."""


class NotSent(ChannelError):
    """Call that certainly had no effect and is safe to retry."""


class Throttled(NotSent):
    """Rate limit of the platform, for a chat or the whole account."""

    def __init__(self, seconds: float, *, account: bool = False) -> None:
        super().__init__(f"the platform asks to wait {seconds:g} s")
        self.seconds, self.account = seconds, account


class OutcomeUnknown(ChannelError):
    """Connection lost after the call may have had its effect."""


class NotDelivered(ChannelError):
    """
    Permanent rejection of a message by the platform.

    ``formatting``: because of its formatting, so it may be sent without. ``gone``: the
    message to change no longer exists. ``moved``: the chat's current id.
    """

    def __init__(
        self,
        message: str,
        *,
        formatting: bool = False,
        gone: bool = False,
        moved: str | None = None,
    ) -> None:
        super().__init__(message)
        self.formatting, self.gone, self.moved = formatting, gone, moved


class AccountInUse(ChannelError):
    """Account that another program uses at the same time."""


class AccountRefused(ChannelError):
    """Rejected token, or account without a needed permission."""


class StoreError(ClewError):
    """Refusal or failure of the database."""


class ConstraintViolated(StoreError):
    """Write rejected by a constraint of the schema: a bug above, or a lost race."""

    def __init__(self, message: str, *, constraint: str) -> None:
        super().__init__(message)
        self.constraint = constraint


class StoreUnavailable(StoreError):
    """
    Database that cannot be reached or is shutting down.

    Nothing was stored, unless ``uncertain``: the connection was lost in COMMIT, and the
    database could not be asked since.
    """

    def __init__(self, message: str, *, uncertain: bool = False) -> None:
        super().__init__(message)
        self.uncertain = uncertain


class SearchNotReady(StoreUnavailable):
    """
    Search index that cannot answer now; nothing else is affected.

    ``damaged``: it has to be rebuilt from the entries.
    """

    def __init__(self, *, damaged: bool) -> None:
        state = "is damaged and has to be rebuilt" if damaged else "is being built"
        super().__init__(f"the search index {state}: try again in a moment")
        self.damaged = damaged


class StoreFull(StoreError):
    """Lack of space; nothing was stored."""


class StoreDamaged(StoreError):
    """Damaged database file; nothing was written."""


class StoreInUse(StoreError):
    """Store or file in use by another process; nothing was changed."""


class StoreUnusable(StoreError):
    """Store that cannot be opened; the text says why and what to do."""
