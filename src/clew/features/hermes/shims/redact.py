"""Redaction of secrets (``agent.redact``)."""

from __future__ import annotations

import re
from typing import Any, Final

_MASK: Final = "[redacted]"
#: A word that names a secret, and its value; tokens of known forms; passwords in addresses.
_NAMED: Final = re.compile(
    r"""(?ix) ( \b[\w-]*(?:api[_-]?key|token|secret|passw(?:or)?d|authorization)[\w-]*
    ["']? \s* [:=] \s* (?:bearer\s+)? ["']? ) [^\s"',;}]{6,}"""
)
_TOKEN: Final = re.compile(
    r"""(?x) \b(?: (?:sk|pk|rk|ghp|gho|ghs|xox[abp]|glpat|hf|apify_api)[-_][\w-]{12,}
    | AKIA[0-9A-Z]{16} | eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+ )"""
)
_ADDRESS: Final = re.compile(r"(\w+://[^\s:/@]*:)[^\s/@]+(@)")


def redact_sensitive_text(text: Any, **_: Any) -> str:
    """Return a text without what looks like a secret."""
    masked = _ADDRESS.sub(rf"\1{_MASK}\2", _TOKEN.sub(_MASK, str(text)))
    return _NAMED.sub(rf"\1{_MASK}", masked)


def redact_for_egress(text: Any, **_: Any) -> str:
    """Return the same."""
    return redact_sensitive_text(text)
