"""
Every error that Clew raises on purpose.

::

    ClewError
    ├── UsageError                what was asked for cannot be; nothing was changed
    │   ├── KeyReused
    │   ├── NotFound
    │   ├── SettingsError
    │   │   └── PortTaken
    │   ├── StoreNotEmpty
    │   └── TitleTaken
    ├── GatewayRunning            this home has one already: says which process
    ├── Refused                   the state of things changed first; nothing was changed
    │   ├── LeaseLost
    │   ├── LeaseHeld
    │   ├── RotationConflict
    │   ├── SessionEnded
    │   ├── TakenBack
    │   ├── TurnEnded
    │   └── WrongMove
    ├── ChannelError              a chat platform
    │   ├── NotSent               a call certainly had no effect: trying again is safe
    │   │   └── Throttled         … not before so many seconds
    │   ├── OutcomeUnknown        a call may have had its effect
    │   ├── NotDelivered          the platform refuses this message for good
    │   ├── Contested             another program uses the account
    │   └── AccountRefused        the platform does not take the token
    └── StoreError                the database
        ├── ConstraintViolated    a constraint of the schema refused a write
        ├── StoreUnavailable      for now: nothing was stored, try again
        │   └── SearchNotReady    the search index is being built, or must be built again
        ├── StoreFull             the disk or the quota
        ├── StoreDamaged          corrupt pages
        ├── StoreInUse            somebody works on it: says who
        └── StoreUnusable         cannot be opened at all: says what to do
"""

from __future__ import annotations


class ClewError(Exception):
    """The root: its text is a sentence that a person can act on."""


class UsageError(ClewError):
    """What was asked for cannot be done as asked; nothing was changed."""


class KeyReused(UsageError):
    """The same idempotency key came with another request."""

    def __init__(self) -> None:
        super().__init__(
            "this Idempotency-Key was used with another request: use a new key for a new request"
        )


class NotFound(UsageError):
    """There is no such conversation, session, route or turn."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"there is no {what} {name!r}")
        self.what, self.name = what, name


class SettingsError(UsageError):
    """Settings are unknown or have no usable value: one sentence each, in ``problems``."""

    def __init__(self, *problems: str) -> None:
        one = "\n  - ".join(problems)
        super().__init__(one if len(problems) == 1 else f"the settings are wrong:\n  - {one}")
        self.problems = problems


class PortTaken(SettingsError):
    """Another program listens where the settings say."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"port {port} on {host} is in use by another program: stop it, or set api.port to "
            "another one"
        )
        self.host, self.port = host, port


class GatewayRunning(ClewError):
    """A gateway serves this home already."""

    def __init__(self, home: str, *, pid: int, url: str) -> None:
        super().__init__(
            f"a gateway serves {home} already, as process {pid} at {url}: stop that one first "
            f"(kill {pid}), talk to it (clew), or give this one a home of its own with --home"
        )
        self.home, self.pid, self.url = home, pid, url


class StoreNotEmpty(UsageError):
    """Another store was to take the place of one that has something in it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the store {name} is not empty")
        self.name = name


class TitleTaken(UsageError, ValueError):
    """Another conversation of the same scope has this title."""

    def __init__(self, title: str) -> None:
        super().__init__(f"another conversation already has the title {title!r}")
        self.title = title


class Refused(ClewError):
    """Somebody else was faster; nothing was changed."""


class LeaseLost(Refused):
    """The lease is not held any more: another owner took the conversation over, or it ran out."""

    def __init__(self, conversation: str, *, owner: str, fence: int) -> None:
        super().__init__(
            f"conversation {conversation}: owner {owner} lost its lease (fence {fence})"
        )
        self.conversation, self.owner, self.fence = conversation, owner, fence


class LeaseLapsed(LeaseLost):
    """It could not be renewed in time because the store was away; maybe nobody has taken it."""


class LeaseHeld(Refused):
    """Another living owner holds the lease."""

    def __init__(self, conversation: str, *, holder: str) -> None:
        super().__init__(f"conversation {conversation} is being written by owner {holder}")
        self.conversation, self.holder = conversation, holder


class RotationConflict(Refused):
    """The head or the last seq is not the expected one any more."""

    def __init__(self, conversation: str, *, expected: str, head: str) -> None:
        super().__init__(f"conversation {conversation}: expected head {expected}, found {head}")
        self.conversation, self.expected, self.head = conversation, expected, head


class SessionEnded(Refused):
    """The session takes no more entries; ``head`` is the one that follows it."""

    def __init__(self, session: str, *, head: str) -> None:
        super().__init__(f"session {session} has ended; the head is {head}")
        self.session, self.head = session, head


class TakenBack(Refused):
    """A message that came while the turn ran takes the turn back."""

    def __init__(self, turn: str) -> None:
        super().__init__(f"turn {turn} was taken back by a new message")
        self.turn = turn


class TurnStopping(Refused):
    """The turn was asked to stop: nothing more is begun in it."""

    def __init__(self, turn: str) -> None:
        super().__init__(f"turn {turn} was asked to stop")
        self.turn = turn


class TurnEnded(Refused):
    """The turn has its outcome already."""

    def __init__(self, turn: str, *, outcome: str) -> None:
        super().__init__(f"turn {turn} has ended: {outcome}")
        self.turn, self.outcome = turn, outcome


class WrongMove(Refused):
    """A life cycle does not allow this move."""

    def __init__(self, what: str, *, old: str, new: str) -> None:
        super().__init__(f"{what} cannot go from {old} to {new}")
        self.what, self.old, self.new = what, old, new


class ChannelError(ClewError):
    """A chat platform refused or failed; no text of it holds a secret."""


class NotSent(ChannelError):
    """A call certainly had no effect: trying again is safe."""


class Throttled(NotSent):
    """The platform takes no calls for a while, to a chat or from the whole account."""

    def __init__(self, seconds: float, *, account: bool = False) -> None:
        super().__init__(f"the platform asks to wait {seconds:g} s")
        self.seconds, self.account = seconds, account


class OutcomeUnknown(ChannelError):
    """The connection was lost after the call may have had its effect."""


class NotDelivered(ChannelError):
    """
    The platform refuses this message, and will again.

    ``formatting``: because of its formatting, so that it may be sent without. ``gone``: what was to
    be changed is not there any more. ``moved``: the id that the chat has now.
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


class Contested(ChannelError):
    """Another program uses the account at the same time."""


class AccountRefused(ChannelError):
    """The platform does not take the token, or does not let the account do its work."""


class StoreError(ClewError):
    """The database refused or failed."""


class ConstraintViolated(StoreError):
    """A constraint of the schema refused a write: a bug above, or a race that lost."""

    def __init__(self, message: str, *, constraint: str) -> None:
        super().__init__(message)
        self.constraint = constraint


class StoreUnavailable(StoreError):
    """
    The database cannot be reached or is shutting down.

    Nothing was stored, unless it is ``uncertain``: the connection was lost in COMMIT, and the
    database could not be asked since.
    """

    def __init__(self, message: str, *, uncertain: bool = False) -> None:
        super().__init__(message)
        self.uncertain = uncertain


class SearchNotReady(StoreUnavailable):
    """
    The search index cannot answer now; nothing else is touched by that.

    ``damaged``: it is broken, and has to be rebuilt from the entries.
    """

    def __init__(self, *, damaged: bool) -> None:
        state = "is damaged and has to be rebuilt" if damaged else "is being built"
        super().__init__(f"the search index {state}: try again in a moment")
        self.damaged = damaged


class StoreFull(StoreError):
    """There is no space left; nothing was stored."""


class StoreDamaged(StoreError):
    """The database file is damaged; nothing was written."""


class StoreInUse(StoreError):
    """Somebody works on the store, or on the file; nothing was changed."""


class StoreUnusable(StoreError):
    """The store cannot be opened; the text says why and what to do."""
