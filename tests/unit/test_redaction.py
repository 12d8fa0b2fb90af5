"""A secret is hidden however it is written, and nothing else is."""

from __future__ import annotations

import base64
import json
import random
import re
import string
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.core.redaction import Redactor

SECRET = 'sk-Live/9+a"b\\c=d&e%f ü7'
REDACTOR = Redactor([SECRET, "s3cr3t-token-0123456789"])


def folded(text: str, width: int, gap: str) -> str:
    return gap.join(text[at : at + width] for at in range(0, len(text), width))


WRITTEN = {
    "as it is": SECRET,
    "in python": repr(SECRET),
    "in json": json.dumps({"key": SECRET}),
    "in json, not ascii": json.dumps({"key": SECRET}, ensure_ascii=False),
    "in json in json": json.dumps({"args": json.dumps({"key": SECRET})}),
    "in a url": f"https://x.example/?key={quote(SECRET, safe='')}",
    "in a form": f"key={quote_plus(SECRET)}",
    "in a url, small escapes": re.sub(
        "%..", lambda found: found[0].lower(), quote(SECRET, safe="")
    ),
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "base64, after one": base64.b64encode(b"u" + SECRET.encode()).decode(),
    "base64, after user": base64.b64encode(b"user:" + SECRET.encode() + b":more").decode(),
    "base64 of urls": base64.urlsafe_b64encode(b"ab" + SECRET.encode()).decode(),
    "hexadecimal": SECRET.encode().hex(),
    "hexadecimal, large": SECRET.encode().hex().upper(),
    "in two lines": f"{SECRET[:9]}\n{SECRET[9:]}",
    "in lines with margins": folded(SECRET, 5, "\r\n    "),
    "letter by letter": " ".join(SECRET),
    "in json, in two lines": json.dumps(f"{SECRET[:9]}\n{SECRET[9:]}"),
    "mime": base64.encodebytes(b"x" * 50 + SECRET.encode()).decode(),
    "base64 in lines": folded(base64.b64encode(SECRET.encode()).decode(), 4, "\n"),
}


@pytest.mark.parametrize("written", WRITTEN)
def test_a_secret_is_hidden_however_it_is_written(written: str) -> None:
    found = REDACTOR.redact_text(f"before {WRITTEN[written]} after")
    assert "********" in found
    assert found.startswith("before ")
    assert found.endswith(" after")


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("width", [1, 5, 30])
def test_parts_of_a_text_give_no_more_of_a_secret_away_than_the_whole(
    written: str, width: int
) -> None:
    text = f"before {WRITTEN[written]} after"
    cuts = range(0, len(text), width)
    parts = [
        REDACTOR.redact_part(text[:at], text[at : at + width], text[at + width :]) for at in cuts
    ]
    told = REDACTOR.redact_text(text)
    assert re.sub(r"\*+", "", "".join(parts)) == told.replace("********", "")


@pytest.mark.parametrize("offset", range(3))
@pytest.mark.parametrize("length", range(8, 14))
def test_base64_gives_nothing_of_the_secret_away_but_bits_at_its_ends(
    offset: int, length: int
) -> None:
    secret = "".join(random.Random(length).choices(string.ascii_letters, k=length))
    encoded = base64.b64encode(b"\xff" * offset + secret.encode() + b"\xff" * 4).decode()
    hidden = Redactor([secret]).redact_text(encoded)
    assert "********" in hidden
    assert len(hidden.replace("********", "")) <= len(encoded) - (length * 8 // 6 - 2)


def test_lines_of_a_key_file_are_hidden_without_the_others() -> None:
    key = "-----BEGIN KEY-----\n" + folded("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC" * 2, 32, "\n")
    hidden = Redactor([key]).redact_text("k.pem:1: -----BEGIN KEY-----\nk.pem:2: " + key[20:52])
    assert hidden == "k.pem:1: -----BEGIN KEY-----\nk.pem:2: ********"


def test_nothing_else_is_hidden() -> None:
    text = "The quick brown fox: sk-Live, 0123456789, s3cr3t, token.\n" * 50
    assert REDACTOR.redact_text(text) == text
    # A short one is found as it is written only.
    short = Redactor(["abc"])
    assert short.redact_text("abc a b c YWJj 616263") == "******** a b c YWJj 616263"
    assert not Redactor(["", "  "])
    assert Redactor([]).redact_text("anything") == "anything"


@given(st.text(max_size=300))
def test_texts_without_a_secret_stay_as_they_are(text: str) -> None:
    assert REDACTOR.redact_text(text) == text


@given(before=st.text(max_size=40), after=st.text(max_size=40))
def test_the_secret_is_hidden_anywhere(before: str, after: str) -> None:
    found = REDACTOR.redact_text(f"{before}s3cr3t-token-0123456789{after}")
    assert "s3cr3t-token-0123456789" not in found
    assert "********" in found
