"""The words for stored codes; what older versions stored as a sentence stays as it is."""

from __future__ import annotations

import json

import pytest

from clew.core.channel_events import ChatNotice, OutboundMessage, dump_message, load_message
from clew.core.system_note import SystemNote
from clew.wording import describe_note, word_message


@pytest.mark.parametrize("note", SystemNote)
def test_every_system_note_has_words(note: SystemNote) -> None:
    assert describe_note(note.value) not in (None, note.value)


@pytest.mark.parametrize("note", ["the user wrote instead", "too risky", None])
def test_a_note_that_is_no_code_stays_as_it_is(note: str | None) -> None:
    assert describe_note(note) == note


_DETAILS = {ChatNotice.EXPIRED: ("cnv_1", "idle"), ChatNotice.REASON: ("2", "pay")}


@pytest.mark.parametrize("notice", ChatNotice)
def test_every_notice_is_stored_as_a_code_and_sent_as_a_sentence(notice: ChatNotice) -> None:
    details = _DETAILS.get(notice, ())
    body = dump_message(OutboundMessage(notice=notice, details=details, markup=False))
    assert json.loads(body)["text"] == ""
    said = word_message(load_message(body))
    assert said.text.endswith((".", ")"))
    assert not said.markup


def test_a_message_that_an_older_version_stored_is_sent_as_it_is() -> None:
    body = '{"text": "Hi", "markup": true, "buttons": [], "reply_to": null, "instead_of": null}'
    assert dump_message(load_message(body)) == body
    assert word_message(load_message(body)).text == "Hi"
