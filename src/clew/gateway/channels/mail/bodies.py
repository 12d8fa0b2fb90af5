"""Bodies of mails: text and HTML as one text, and the files of a mail; pure."""

from __future__ import annotations

import re
from email.message import Message
from typing import TYPE_CHECKING, Final, cast

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from email.message import MIMEPart

#: Longer bodies are cut, and say so.
MAX_TEXT: Final = 200_000
_MAX_HTML: Final = 1_000_000
#: Containers and parts without words of the sender.
_UNREAD: Final = frozenset(
    {"application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature"}
)
_UNSEEN_TAGS: Final = ("script", "style", "head", "title", "template", "noscript", "svg", "object")
_HIDDEN: Final = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|mso-hide", re.IGNORECASE
)
#: Where clients put what they quote.
_QUOTES: Final = (
    "blockquote[type=cite], .gmail_quote, .gmail_quote_container, .yahoo_quoted, "
    ".protonmail_quote, .moz-cite-prefix, #divRplyFwdMsg, #appendonsend ~ *"
)
_EMPTY_LINES: Final = re.compile(r"\n[ \t]*\n\s*\n+")


class MailBody(Record):
    """The words and files of a mail."""

    text: str
    #: The quotation that the HTML marks as such.
    quoted: str = ""
    #: What people should know of the text: ``[some characters could not be read]``.
    lines: tuple[str, ...] = ()
    #: Types of parts that cannot be read.
    unsupported: tuple[str, ...] = ()


def read_body(mail: MIMEPart) -> MailBody:
    """Return the body of a mail; of alternatives the plain text, if it has words."""
    texts: list[str] = []
    quoted: list[str] = []
    lines: dict[str, None] = {}
    for part in _choose_parts(mail):
        text, is_whole = _decode(part)
        if not is_whole:
            lines["[some characters could not be read]"] = None
        if part.get_content_type() == "text/html":
            text, quote = convert_html(text)
            quoted.append(quote)
        elif part.get_param("format") == "flowed":
            text = _unfold(text, joined=part.get_param("delsp") == "yes")
        texts.append(text)
    text = "\n\n".join(one for one in (each.strip() for each in texts) if one)
    if len(text) > MAX_TEXT:
        lines[f"[the text was cut: it has {len(text):,} characters]"] = None
    return MailBody(
        text=text[:MAX_TEXT],
        quoted="\n\n".join(filter(None, quoted))[:MAX_TEXT],
        lines=tuple(lines),
        unsupported=tuple(_find_unsupported(mail)),
    )


def list_files(mail: MIMEPart) -> Sequence[tuple[int, MIMEPart]]:
    """Return the files of a mail with their position, the same each time."""
    return [(n, part) for n, part in enumerate(_leaves(mail)) if is_file(part)]


def is_file(part: MIMEPart) -> bool:
    """Return whether a part is a file, and not text to read."""
    kind = part.get_content_type()
    if kind in _UNREAD:
        return False
    named = part.get_content_disposition() == "attachment" or bool(part.get_filename())
    return named or kind not in ("text/plain", "text/html")


def read_file(part: MIMEPart) -> bytes:
    """Return the content of a file; of a mail in a mail, its source."""
    if part.get_content_type() == "message/rfc822":
        inner = part.get_payload()
        first = cast("list[object]", inner)[0] if isinstance(inner, list) and inner else None
        return first.as_bytes() if isinstance(first, Message) else b""
    found = part.get_payload(decode=True)
    return found if isinstance(found, bytes) else b""


def _leaves(mail: MIMEPart) -> Iterator[MIMEPart]:
    """Yield the parts that contain no others; a mail in a mail is one."""
    if mail.get_content_maintype() != "multipart" or not mail.is_multipart():
        yield mail
        return
    for part in mail.iter_parts():
        yield from _leaves(part)


def _choose_parts(mail: MIMEPart) -> Iterator[MIMEPart]:
    """Yield the parts whose text is read."""
    if mail.get_content_type() == "multipart/alternative" and mail.is_multipart():
        chosen = [list(_choose_parts(part)) for part in mail.iter_parts()]
        yield from min(filter(None, chosen), key=_rank, default=())
    elif mail.get_content_maintype() == "multipart" and mail.is_multipart():
        for part in mail.iter_parts():
            yield from _choose_parts(part)
    elif mail.get_content_maintype() == "multipart":
        yield mail  # malformed: without its parts
    elif not is_file(mail) and mail.get_content_type() not in _UNREAD:
        yield mail


def _rank(parts: Sequence[MIMEPart]) -> int:
    if not any(_decode(part)[0].strip() for part in parts):
        return 2
    return int(any(part.get_content_type() == "text/html" for part in parts))


def _find_unsupported(mail: MIMEPart) -> Iterator[str]:
    if mail.get_content_type() == "multipart/encrypted":
        yield "encrypted mail"
    elif mail.get_content_maintype() == "multipart" and not mail.is_multipart():
        yield "malformed mail"


def _decode(part: MIMEPart) -> tuple[str, bool]:
    """Return the text of a part, and whether every character of it could be read."""
    found = part.get_payload(decode=True)
    content = found if isinstance(found, bytes) else str(part.get_payload()).encode()
    for charset in (part.get_content_charset(), "utf-8"):
        try:
            return content.decode(charset or "utf-8").replace("\r\n", "\n"), True
        except (LookupError, UnicodeDecodeError, ValueError):
            continue
    return content.decode("cp1252", errors="replace").replace("\r\n", "\n"), False


def _unfold(text: str, *, joined: bool) -> str:
    """Join the lines that a client has broken (``format=flowed``)."""
    lines: list[str] = []
    is_open = False
    for line in text.split("\n"):
        is_plain = not line.startswith(">") and line != "-- "
        own = line.removeprefix(" ") if is_plain else line
        if is_open and is_plain:
            lines[-1] = (lines[-1][:-1] if joined else lines[-1]) + own
        else:
            lines.append(own)
        is_open = is_plain and own.endswith(" ")
    return "\n".join(lines)


def convert_html(html: str) -> tuple[str, str]:
    """Return the visible text of HTML, and of what it marks as quoted."""
    from bs4 import BeautifulSoup  # noqa: PLC0415  (only for mails without text)
    from markdownify import MarkdownConverter  # noqa: PLC0415

    try:
        soup = BeautifulSoup(html[:_MAX_HTML], "html.parser")
        for tag in soup.find_all(_UNSEEN_TAGS) + soup.find_all(style=_HIDDEN):
            tag.decompose()
        quotes = [tag.extract() for tag in soup.select(_QUOTES) if tag.parent is not None]
        # As text for people: nothing is escaped.
        convert = MarkdownConverter(
            heading_style="ATX", escape_asterisks=False, escape_underscores=False, escape_misc=False
        ).convert
        text, *quoted = (
            _EMPTY_LINES.sub("\n\n", convert(str(one))).strip() for one in (soup, *quotes)
        )
    except RecursionError:
        # Deeper than any person writes: the bare text.
        return re.sub(r"<[^<>]*>", " ", html[:_MAX_HTML]), ""
    return text, "\n\n".join(filter(None, quoted))
