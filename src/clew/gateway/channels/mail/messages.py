"""Answers by mail: the stored chunks, and the mails that are made of them; pure."""

from __future__ import annotations

import hashlib
import json
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from html import escape
from typing import TYPE_CHECKING, Any, Final

from clew.core.channel_events import verbatim
from clew.core.text import sanitize_text
from clew.engine.readable_export.message_markdown import render_html
from clew.gateway.channels.mail.threads import name_thread
from clew.gateway.text.markdown_writer import MarkdownMeasure, write_markdown
from clew.gateway.text.paging import paginate
from clew.gateway.text.rich_text import show_addresses, to_plain_text
from clew.gateway.text.splitting import TextCost

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from clew.core.channel_events import OutboundMessage
    from clew.core.route import Route
    from clew.core.sent_files import SentFile
    from clew.gateway.channels.mail.settings import MailSettings
    from clew.gateway.channels.mail.threads import MailThread
    from clew.gateway.text.rich_text import TextBlock

#: Maximum characters of a mail: more is comfortable to nobody.
MAX_LENGTH: Final = 10_000
_REPEAT_NOTICE: Final = "(may be a repeat)\n"

Json = dict[str, Any]


def render(message: OutboundMessage) -> Sequence[str]:
    """Render a message as chunks of JSON: the text, and the same as HTML."""
    limit = TextCost(MAX_LENGTH - len(_REPEAT_NOTICE))
    parts = paginate(message, MarkdownMeasure(len), limit)
    bodies: list[Json] = [
        _render_part(part, message if len(parts) == 1 else None) for part in parts
    ]
    if bodies and message.document is not None:
        bodies.insert(0, {"text": "", "document": message.document.to_chunk()})
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


def _render_part(part: Sequence[TextBlock], whole: OutboundMessage | None) -> Json:
    text = to_plain_text(show_addresses(part, lambda _: False))
    # Whole, it keeps its lists and tables.
    markdown = write_markdown(part) if whole is None else sanitize_text(whole.text)
    is_markup = whole is None or whole.markup
    html = render_html(markdown) if is_markup else None
    return {"text": text} if html is None else {"text": text, "html": html}


def render_file(file: SentFile) -> str:
    """Render a file as a chunk: its name and type, and the caption as its text."""
    said = render(verbatim(file.caption))
    body: Json = json.loads(said[0]) if said else {"text": ""}
    named = {"name": file.name, "media_type": file.media_type}
    return json.dumps({**body, "document": named}, ensure_ascii=False)


def with_repeat_notice(chunk: str) -> str:
    """Return the chunk with a notice that it may have been sent before."""
    body: Json = json.loads(chunk)
    body["text"] = _REPEAT_NOTICE + body["text"]
    if "html" in body:
        body["html"] = f"<p>{escape(_REPEAT_NOTICE.strip())}</p>\n{body['html']}"
    return json.dumps(body, ensure_ascii=False)


def without_formatting(chunk: str) -> str:
    """Return the chunk without its HTML."""
    body: Json = json.loads(chunk)
    body.pop("html", None)
    return json.dumps(body, ensure_ascii=False)


def build_id(route: Route, key: str, settings: MailSettings) -> str:
    """Return the message ID of an answer: the same for all attempts at it."""
    thread = route.thread or name_thread(route.chat, "")
    mark = hashlib.sha256(f"{settings.address}\n{key}".encode()).hexdigest()[:32]
    return f"<clew.{thread}.{mark}@{settings.domain}>"


def build_mail(
    route: Route,
    chunk: str,
    *,
    key: str,
    settings: MailSettings,
    thread: MailThread | None,
    now: datetime,
    content: bytes | None = None,
) -> EmailMessage:
    """Return the mail of a chunk; ``content`` is that of its file."""
    body: Json = json.loads(chunk)
    mail = EmailMessage(policy=SMTP)
    mail["Message-ID"] = build_id(route, key, settings)
    mail["Date"] = format_datetime(now)
    mail["From"], mail["To"] = settings.address, route.chat
    mail["Subject"] = _build_subject(thread)
    if thread is not None:
        mail["In-Reply-To"] = thread.last
        mail["References"] = " ".join([*thread.references, thread.last])
    # No robot answers these, and we answer none that has them.
    mail["Auto-Submitted"] = "auto-replied"
    mail["X-Auto-Response-Suppress"] = "All"
    mail.set_content(body["text"])
    if "html" in body:
        mail.add_alternative(_wrap_html(body["html"]), subtype="html")
    if (named := body.get("document")) is not None:
        whole = named["text"].encode() if content is None else content
        _attach(mail, named["name"], named.get("media_type") or "text/plain", whole)
    return mail


def _build_subject(thread: MailThread | None) -> str:
    subject = "" if thread is None else thread.subject
    if not subject:
        return "Re: your mail"
    return subject if subject.lower().startswith("re:") else f"Re: {subject}"


def _wrap_html(html: str) -> str:
    return f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"></head><body>\n{html}</body></html>'


def _attach(mail: EmailMessage, name: str, media_type: str, content: bytes) -> None:
    kind, _, subkind = media_type.partition("/")
    if not kind or not subkind or kind in ("message", "multipart"):
        kind, subkind = "application", "octet-stream"
    # As bytes, text too: line ends are kept.
    mail.add_attachment(
        content, maintype=kind, subtype=subkind.partition(";")[0].strip(), filename=name
    )
