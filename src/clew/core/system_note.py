"""Reasons that Clew itself records: codes, which ``clew.wording`` turns into sentences."""

from __future__ import annotations

import enum


class SystemNote(enum.StrEnum):
    """
    Reason why an input, an approval or a delivery ended without its answer.

    It is stored in place of a text. Older stores have the sentence itself, which is shown
    unchanged.
    """

    BUSY = "busy"  #: another turn was unfinished
    CALLER_LEFT = "caller_left"
    CONVERSATION_DELETED = "conversation_deleted"
    CONVERSATION_RESET = "conversation_reset"
    MESSAGE_DELETED = "message_deleted"
    NEW_MESSAGE = "new_message"
    NOT_IN_TIME = "not_in_time"
    PERSON_EXCLUDED = "person_excluded"
    ROLLED_BACK = "rolled_back"
    ROUNDS_WITHOUT_PERSON = "rounds_without_person"
    TURN_ENDED = "turn_ended"
    UNATTENDED_TOKENS_SPENT = "unattended_tokens_spent"
