"""Errors of the Cloud API, and what each means for a message; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.core.payload import Json, as_object, as_text
from clew.errors import (
    AccountRefused,
    ChannelError,
    NotDelivered,
    NotSent,
    OutcomeUnknown,
    Throttled,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The person wrote more than 24 hours ago.
WINDOW_CLOSED: Final = 131047
#: Seconds to wait for each limit, where the answer names none; those of a chat, of the account.
_CHAT_LIMITS: Final = {131056: 6.0}
_ACCOUNT_LIMITS: Final = {4: 60.0, 80007: 60.0, 130429: 5.0, 131048: 300.0, 133016: 3600.0}
_DEFAULT_WAIT: Final = 5.0
#: Errors of the account, which a person has to set right.
_ACCOUNT_ERRORS: Final = frozenset(
    {0, 3, 10, 190, 368, 131005, 131031, 131042, 133000, 133010, *range(200, 300)}
)
#: Errors of the platform, after which the message may have been sent.
_UNCERTAIN: Final = frozenset({1, 2, 131000, 131016, 131057, 133004})
_SENTENCES: Final = {
    131021: "the agent's own number is no recipient",
    131026: "the person cannot be reached: no WhatsApp on this number, an old version, or the "
    "person blocked the agent",
    131030: "the number is not on the list of recipients of the test number: add it on the page "
    "API Setup",
    131045: "the phone number is not registered: register it in the WhatsApp Manager",
    131049: "WhatsApp limits how many templates a person is sent: try again after a day",
    131050: "the person does not want to be sent templates",
    131051: "WhatsApp does not support this kind of message",
    131053: "WhatsApp does not take the file: its type or its size",
    132000: "the template needs parameters: use one without",
    132001: "there is no such template in this language, or it is not approved",
    132007: "the template violates a policy of WhatsApp",
    132015: "the template is paused: its quality is rated low",
    132016: "the template is disabled: its quality was rated low too often",
}


class WindowClosed(NotDelivered):
    """Message that came more than 24 hours after the person last wrote."""

    def __init__(self) -> None:
        super().__init__(
            "WhatsApp takes no message more than 24 hours after the person last wrote (131047): "
            "set template in the channel's table, which asks the person to write, or send it "
            "again (clew deliveries retry) after they wrote"
        )


def to_channel_error(status: int, answer: Json, headers: Mapping[str, str]) -> ChannelError:
    """Return the error that an unsuccessful response stands for."""
    error = as_object(answer.get("error"))
    code, wait = _read_code(error), headers.get("retry-after", "")
    seconds = float(wait) if wait.isascii() and wait.isdigit() else None
    if code is None:
        if status == 429:
            return Throttled(seconds or _DEFAULT_WAIT, account=True)
        if status == 401:
            return AccountRefused("WhatsApp does not accept the token: create a new one")
        return _without_code(status)
    return explain_error(error, status=status, seconds=seconds)


def _without_code(status: int) -> ChannelError:
    if status >= 500 or status < 400:
        return OutcomeUnknown(f"WhatsApp answered {status}")
    return NotDelivered(f"WhatsApp refused the request: {status}")


def explain_error(
    error: Mapping[str, object], *, status: int, seconds: float | None = None
) -> ChannelError:
    """Return the error that the API, or a receipt, describes."""
    code = _read_code(error)
    if code == WINDOW_CLOSED:
        return WindowClosed()
    if code in _CHAT_LIMITS:
        return Throttled(seconds or _CHAT_LIMITS[code])
    if code in _ACCOUNT_LIMITS or status == 429:
        return Throttled(seconds or _ACCOUNT_LIMITS.get(code or 0, _DEFAULT_WAIT), account=True)
    told = _describe(error)
    if code in _ACCOUNT_ERRORS or status == 401:
        return AccountRefused(f"WhatsApp refuses the account ({told}): see its page at Meta")
    if code in _UNCERTAIN or status >= 500:
        return OutcomeUnknown(f"WhatsApp failed ({told})")
    sentence = _SENTENCES.get(code or 0)
    return NotDelivered(
        f"WhatsApp refused the message: {f'{sentence} ({code})' if sentence else told}"
    )


def _read_code(error: Mapping[str, object]) -> int | None:
    code = error.get("code")
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def _describe(error: Mapping[str, object]) -> str:
    details = as_text(as_object(error.get("error_data")).get("details"))
    says = details or as_text(error.get("message")) or as_text(error.get("title"))
    return f"{as_text(error.get('code'))}: {says}"[:300]


def as_not_sent(error: OutcomeUnknown) -> NotSent:
    """Return the failure of a call that nobody sees the effect of."""
    return NotSent(str(error))
