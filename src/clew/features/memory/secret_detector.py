"""Secrets in a text: keys, cards and accounts, which are not remembered."""

from __future__ import annotations

import re
from typing import Final

from clew.agent.known_secrets import redact_secrets

_NAMED: Final = (
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY")),
    (
        "a key or token",
        re.compile(
            r"\b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}"
            r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"
            r"|\bxox[abeprs]-[\w-]{10,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[\w-]{30,}"
            r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+|\b\d{8,10}:AA[\w-]{30,}"
        ),
    ),
    (
        "a password",
        re.compile(
            r"(?i)\b(?:password|passwort|passphrase|pin|secret|token)\s*(?:is|[:=])\s*(?=\S*\d)\S{4,}"
        ),
    ),
)
_CARD: Final = re.compile(r"\b\d(?:[ -]?\d){12,18}\b")
_IBAN: Final = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b")


def find_secret(text: str) -> str | None:
    """Return what a text holds that is not remembered, as ``a card number``, or ``None``."""
    if redact_secrets(text) != text:
        return "a secret of the settings"
    for name, pattern in _NAMED:
        if pattern.search(text):
            return name
    if any(_is_card(found[0]) for found in _CARD.finditer(text)):
        return "a card number"
    if any(_is_iban(found[0]) for found in _IBAN.finditer(text)):
        return "an account number"
    return None


def _is_card(text: str) -> bool:
    """Return whether the digits pass the check of card numbers (Luhn)."""
    digits = [int(one) for one in text if one.isdigit()]
    doubled = [sum(divmod(2 * one, 10)) for one in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_iban(text: str) -> bool:
    """Return whether the check digits of an IBAN are right (ISO 13616)."""
    account = text.replace(" ", "")
    moved = account[4:] + account[:4]
    return int("".join(str(int(one, 36)) for one in moved)) % 97 == 1
