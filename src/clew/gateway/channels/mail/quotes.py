"""Own words of a mail: without what it quotes, and without its signature; pure."""

from __future__ import annotations

import re
from typing import Final

from clew.record import Record

#: A line above a quotation: "On Monday, Ann wrote:", on one line or two.
_ATTRIBUTION: Final = re.compile(
    r"^(?:on|am|le|el|il|op|em|den|w dniu|dnia|\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4})\b"
    r".{0,300}:\s*$",
    re.IGNORECASE | re.DOTALL,
)
#: Lines that Outlook and others put above a whole mail.
_SEPARATOR: Final = re.compile(
    r"^\s*(?:-{3,}\s*(?:original message|ursprüngliche nachricht|message d'origine|"
    r"mensaje original|forwarded message|weitergeleitete nachricht)\s*-{3,})\s*$"
    r"|^\s*(?:begin forwarded message|anfang der weitergeleiteten nachricht):\s*$",
    re.IGNORECASE,
)
_FROM: Final = re.compile(r"^\s*\*?(?:from|von|de|da|van)\s?:\*?\s+\S", re.IGNORECASE)
_MORE_HEADERS: Final = re.compile(
    r"^\s*\*?(?:sent|date|to|subject|cc|gesendet|datum|an|betreff|envoyé|à|objet|enviado|para|"
    r"asunto|inviato|oggetto)\s?:\*?\s",
    re.IGNORECASE,
)
#: The line that Outlook draws above what it quotes.
_RULE: Final = re.compile(r"\n_{20,}\s*$")
#: The line before a signature, with or without its blank.
_SIGNATURE: Final = re.compile(r"^-- ?$")


class OwnWords(Record):
    """A mail's text, in parts."""

    text: str
    #: Quotations with own words after them, in their order; ``text`` has a line for each.
    inline: tuple[str, ...] = ()
    #: What the mail quotes after its own words.
    quoted: str = ""
    signature: str = ""


def split_mail_text(text: str) -> OwnWords:
    """Split a mail's text into own words, quotations and signature; no line is lost."""
    lines = text.splitlines()
    end = _find_quoted_end(lines)
    own, quoted = lines[:end], "\n".join(lines[end:]).strip()
    mark = next((n for n, line in enumerate(own) if _SIGNATURE.match(line)), len(own))
    # A quotation below a signature is found again within what is left.
    words, inline = _take_inline_quotes(own[:mark])
    return OwnWords(
        text=_RULE.sub("", words).strip(),
        inline=inline,
        quoted=quoted,
        signature="\n".join(own[mark + 1 :]).strip(),
    )


def _find_quoted_end(lines: list[str]) -> int:
    """Return the number of lines before the quotation at the end."""
    for number in range(len(lines)):
        if _SEPARATOR.match(lines[number]) or _is_header_block(lines, number):
            return number
    end = len(lines)
    while end and (_is_quoted(lines[end - 1]) or not lines[end - 1].strip()):
        end -= 1
    is_quoted_after = any(map(_is_quoted, lines[end:]))
    return end - _count_attribution(lines[:end]) if is_quoted_after else end


def _count_attribution(lines: list[str]) -> int:
    """Return how many of the last lines name who is quoted below them."""
    for count in (1, 2):
        if _ATTRIBUTION.match("\n".join(lines[-count:]).strip()):
            return count
    return 0


def _is_header_block(lines: list[str], number: int) -> bool:
    if not _FROM.match(lines[number]):
        return False
    following = [line for line in lines[number + 1 : number + 6] if line.strip()]
    more = sum(bool(_MORE_HEADERS.match(line)) for line in following)
    return more >= 2


def _is_quoted(line: str) -> bool:
    return line.startswith(">")


def _take_inline_quotes(lines: list[str]) -> tuple[str, tuple[str, ...]]:
    """Return the own lines, with a mark for each quotation among them, and the quotations."""
    own: list[str] = []
    found: list[list[str]] = []
    inside = False
    for line in lines:
        if not _is_quoted(line):
            own.append(line)
        elif inside:
            found[-1].append(line)
        else:
            found.append([line])
            own.append(f"[quotation {len(found)}]")
        inside = _is_quoted(line)
    return "\n".join(own), tuple("\n".join(map(_unquote, one)) for one in found)


def _unquote(line: str) -> str:
    return line[1:].removeprefix(" ")
