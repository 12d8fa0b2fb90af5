"""Each kind of failure has advice of its own."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from clew.agent.advice import ADVICE, RETRY_OR_RESET, TURN_ADVICE, get_advice
from clew.agent.failure_reference import render_page
from clew.agent.preflight import check_key_sendable
from clew.agent.provider_errors import FailureKind, ToolsetError, classify_error
from clew.core.turn import TurnOutcome
from clew.engine.final_text import build_final_text
from clew.errors import SettingsError

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"
#: A new conversation mends faults of the context and of a confused model; and what nobody knows.
RESETTABLE = {
    FailureKind.EMPTY,
    FailureKind.GAVE_UP,
    FailureKind.INTERNAL,
    FailureKind.REFUSED,
    FailureKind.SERVER,
}


@pytest.mark.parametrize("kind", FailureKind)
def test_only_faults_of_the_context_advise_a_new_conversation(kind: FailureKind) -> None:
    told = build_final_text(
        "", outcome=TurnOutcome.FAILED, error="401 no", code=kind.value, steps=2
    )
    assert ("/reset" in told) is (kind in RESETTABLE)
    assert ADVICE[kind].text in told or kind is FailureKind.OVERFLOW


def test_no_two_kinds_of_failure_have_the_same_advice() -> None:
    texts = [
        one.text for one in (*ADVICE.values(), *TURN_ADVICE.values()) if one.text != RETRY_OR_RESET
    ]
    assert len(texts) == len(set(texts))


def test_a_failure_of_no_known_kind_names_a_way_out() -> None:
    assert get_advice(None) == get_advice("something new") == RETRY_OR_RESET


def test_the_page_says_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page(), (
        "python -m clew.agent.failure_reference docs/reference/errors.md"
    )


def test_a_set_of_tools_that_hangs_is_not_blamed_on_the_provider() -> None:
    failure = classify_error(ToolsetError("the tools of mcp:home did not come within 30 s"))
    assert failure.kind is FailureKind.TOOLSET
    told = build_final_text(
        "", outcome=TurnOutcome.FAILED, error=failure.user_message, code=failure.kind.value
    )
    assert "mcp:home" in told
    assert "toolset" in told
    assert "provider" not in told


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("sk-abc\ndef", "character 7 of it is a line break"),
        ("sk-abcdef\n", "character 10 of it is a line break"),
        ("sk-abc\r\n", "a line break"),
        ("\u201csk-abcdef\u201d", "character 1 of it is a curly quotation mark"),
        ("sk-\u2018abc", "a curly quotation mark"),
        ("'sk-abcdef'", "a quotation mark"),
        ('"sk-abcdef"', "a quotation mark"),
        ("sk-äbc", "'ä', which is not ASCII"),
        ("sk-ключ", "'к', which is not ASCII"),
        ("sk-abc ", "a space"),
        ("sk-\u00a0abc", "a no-break space"),
        ("\ufeffsk-abc", "an invisible mark"),
        ("sk-\x07abc", "a control character (U+0007)"),
        ("sk-\x7fabc", "a control character (U+007F)"),
    ],
    ids=ascii,
)
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(key: str, told: str) -> None:
    with pytest.raises(SettingsError) as refused:
        check_key_sendable(key, setting="model.api_key")
    text = str(refused.value)
    assert text.startswith("model.api_key cannot be used: ")
    assert told in text
    assert "abc" not in text


@pytest.mark.parametrize("key", [None, "", "none", "sk-abc_DEF.123/+=~", "two words"])
def test_a_key_that_can_be_sent_passes(key: str | None) -> None:
    check_key_sendable(key, setting="model.api_key")


def test_a_certificate_that_expired_is_no_lost_connection() -> None:
    from clew.agent.connection_faults import ConnectionFault, explain_connection_failure  # noqa: PLC0415

    try:
        try:
            error = ssl.SSLCertVerificationError(1, "certificate verify failed")
            error.verify_message = "certificate has expired"
            raise error
        except ssl.SSLError as inner:
            raise asyncio.CancelledError from inner
    except asyncio.CancelledError as outer:
        fault, said = explain_connection_failure(outer)
    assert fault is ConnectionFault.TLS
    assert "certificate has expired" in said
