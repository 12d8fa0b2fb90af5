"""Own words of mails, and whose word it is that a sender is proven."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.gateway.channels.mail.authentication import is_authenticated
from clew.gateway.channels.mail.quotes import split_mail_text

QUOTED = [
    "Yes.\n\nOn Mon, 1 Dec 2025 at 10:00, Ann <ann@people.example> wrote:\n\n> Shall we?\n> Ann",
    "Yes.\n\nOn Mon, 1 Dec 2025 at 10:00, Ann Longname\n<ann@people.example> wrote:\n> Shall we?",
    "Yes.\n\nAm 01.12.25 um 10:00 schrieb Ann:\n> Shall we?",
    "Yes.\n\n-----Original Message-----\nFrom: Ann\nShall we?",
    "Yes.\n____________________\nFrom: Ann\nSent: Monday\nTo: Bob\n\nShall we?",
    "Yes.\n> Shall we?\n",
]


@pytest.mark.parametrize("text", QUOTED)
def test_what_a_client_quotes_below_is_told_from_own_words(text: str) -> None:
    found = split_mail_text(text)
    assert found.text == "Yes."
    assert "Shall we?" in found.quoted


def test_answers_between_quotations_keep_their_places() -> None:
    found = split_mail_text("> One?\nYes.\n> Two?\nNo: on that day I say:\nnothing\n-- \nAnn")
    assert found.text == "[quotation 1]\nYes.\n[quotation 2]\nNo: on that day I say:\nnothing"
    assert found.inline == ("One?", "Two?")
    assert (found.quoted, found.signature) == ("", "Ann")


@given(
    st.lists(st.sampled_from(["word", "> quoted", "", "-- ", "On x wrote:", "From: a", "To: b"]))
)
def test_no_word_is_lost(lines: list[str]) -> None:
    found = split_mail_text("\n".join(lines))
    kept = "\n".join([found.text, *found.inline, found.quoted, found.signature])
    for word in ("word", "quoted", "On x wrote:", "From: a", "To: b"):
        assert kept.count(word) == "\n".join(lines).count(word)


@pytest.mark.parametrize(
    ("header", "proven"),
    [
        ("mx.a; dkim=pass header.d=b.example", True),
        ("mx.a; dkim=pass (2048 bit; x=(y)) header.i=@b.example header.s=s", True),
        ("MX.A 1; spf=pass smtp.mailfrom=x@b.example", True),
        ("mx.a; spf=pass smtp.helo=b.example", False),
        ("mx.a; dkim=pass header.d=example", False),
        ("mx.a; dkim=pass header.d=evil-b.example", False),
        ("mx.a; dkim=neutral (dkim=pass header.d=b.example) header.d=b.example", False),
        ("mx.b; dkim=pass header.d=b.example", False),
        ("mx.a; none", False),
        ("(" * 50_000, False),
    ],
)
def test_only_the_own_server_proves_a_sender(header: str, proven: bool) -> None:
    assert is_authenticated([header], authserv_id="mx.a", domain="b.example") is proven


def test_a_sender_below_the_domain_that_signed_is_proven() -> None:
    header = "mx.a; dkim=pass header.d=b.example"
    assert is_authenticated([header], authserv_id="mx.a", domain="mail.b.example")
    assert not is_authenticated([], authserv_id="mx.a", domain="b.example")
