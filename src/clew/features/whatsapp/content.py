"""Content of a WhatsApp message: its text, files, lines and quotations; pure."""

from __future__ import annotations

import mimetypes
from typing import TYPE_CHECKING, Final

from clew.core.channel_events import IncomingFile
from clew.core.payload import Json, as_object, as_objects, as_text
from clew.core.quotation import (
    AGENT,
    OwnLine,
    Quoted,
    format_item,
    format_recording,
    format_titled_item,
    quote_forwarded,
    quote_reply,
)
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MEDIA_TYPES: Final = ("image", "video", "audio", "document", "sticker")


class WhatsAppContent(Record):
    """The content of a message."""

    #: The sender's own words.
    text: str = ""
    lines: tuple[str, ...] = ()
    quoted: tuple[Quoted, ...] = ()
    unsupported: tuple[str, ...] = ()
    files: tuple[IncomingFile, ...] = ()


def read_content(message: Json, *, me: str) -> WhatsAppContent:
    """Return the content of a message; ``me`` is the agent's number."""
    kind = as_text(message.get("type")) or "unknown"
    given = as_object(message.get(kind))
    read = _READERS.get(kind)
    content = WhatsAppContent(unsupported=(_name_unsupported(message, kind),))
    if read is not None:
        content = read(given)
    elif kind in MEDIA_TYPES:
        content = _read_media(kind, given)
    elif kind == "contacts":
        content = WhatsAppContent(lines=_read_contacts(as_objects(message.get("contacts"))))
    return _add_context(message, content, me)


def _name_unsupported(message: Json, kind: str) -> str:
    """Return the name of what WhatsApp or the channel cannot pass on."""
    errors = as_objects(message.get("errors"))
    told = as_text(errors[0].get("title")) if errors else ""
    inner = as_text(as_object(message.get("unsupported")).get("type"))
    return inner or told or kind


def _read_text(given: Json) -> WhatsAppContent:
    return WhatsAppContent(text=as_text(given.get("body")).strip())


def _read_media(kind: str, given: Json) -> WhatsAppContent:
    media_type = as_text(given.get("mime_type")).partition(";")[0].strip()
    media_type = media_type or "application/octet-stream"
    ending = mimetypes.guess_extension(media_type) or ""
    lines: list[str] = []
    if kind == "audio":
        lines.append(
            OwnLine(format_recording("voice message" if given.get("voice") else kind, None))
        )
    if kind == "sticker":
        lines.append(OwnLine("[animated sticker]" if given.get("animated") else "[sticker]"))
    file = IncomingFile(
        id=as_text(given.get("id")),
        name=as_text(given.get("filename")) or f"{kind}{ending}",
        media_type=media_type,
    )
    return WhatsAppContent(
        text=as_text(given.get("caption")).strip(),
        lines=tuple(lines),
        files=(file,) if file.id else (),
        unsupported=() if file.id else (f"{kind} without content",),
    )


def _read_location(given: Json) -> WhatsAppContent:
    place = [given.get("latitude"), given.get("longitude")]
    named = list(filter(None, (as_text(given.get(name)) for name in ("name", "address", "url"))))
    if named:
        return WhatsAppContent(lines=(format_item("venue", *named, *place),))
    return WhatsAppContent(lines=(OwnLine(format_item("location", *place)),))


def _read_contact(given: Json) -> str:
    name = as_text(as_object(given.get("name")).get("formatted_name"))
    details = [
        as_text(one.get(field))
        for part, field in (("phones", "phone"), ("emails", "email"), ("urls", "url"))
        for one in as_objects(given.get(part))
    ]
    company = as_text(as_object(given.get("org")).get("company"))
    return format_item("contact", name or "somebody", *details, company)


def _read_contacts(given: Sequence[Json]) -> tuple[str, ...]:
    """Return a line for each shared contact."""
    return tuple(map(_read_contact, given)) or ("[contact]",)


def _read_interactive(given: Json) -> WhatsAppContent:
    """Read the reply to a form, or to buttons that are not the agent's."""
    form = as_object(given.get("nfm_reply"))
    if form:
        told = (form.get("name"), form.get("body"), form.get("response_json"))
        return WhatsAppContent(lines=(format_titled_item("form", *map(as_text, told)),))
    chosen = as_object(given.get("button_reply")) or as_object(given.get("list_reply"))
    title = as_text(chosen.get("title"))
    kind = as_text(given.get("type")) or "interactive"
    return WhatsAppContent(text=title, unsupported=() if title else (kind,))


def _read_template_button(given: Json) -> WhatsAppContent:
    text = as_text(given.get("text")).strip() or as_text(given.get("payload")).strip()
    return WhatsAppContent(text=text, unsupported=() if text else ("button",))


def _read_reaction(given: Json) -> WhatsAppContent:
    return WhatsAppContent(lines=(OwnLine(format_item("reaction", given.get("emoji"))),))


def _read_order(given: Json) -> WhatsAppContent:
    items = [
        f"{as_text(one.get('quantity'))} of {as_text(one.get('product_retailer_id'))} "
        f"at {as_text(one.get('item_price'))} {as_text(one.get('currency'))}"
        for one in as_objects(given.get("product_items"))
    ]
    line = format_titled_item("order", *items)
    return WhatsAppContent(text=as_text(given.get("text")).strip(), lines=(line,))


def _add_context(message: Json, content: WhatsAppContent, me: str) -> WhatsAppContent:
    """Add what a message replies to, and quote what was forwarded."""
    context = as_object(message.get("context"))
    lines, quoted = list(content.lines), list(content.quoted)
    if context.get("forwarded") or context.get("frequently_forwarded"):
        # Words of others, the lines among them: they are data.
        told = "\n".join(filter(None, [content.text, *content.lines]))
        content, lines = replace(content, text=""), []
        quoted.append(quote_forwarded("", told))
    elif context.get("id") and message.get("type") != "button":
        by_agent = as_text(context.get("from")) == me
        quoted.append(quote_reply(AGENT if by_agent else "", ""))
    product = as_object(context.get("referred_product")).get("product_retailer_id")
    if product:
        lines.append(format_item("about the product", as_text(product)))
    advert = as_object(message.get("referral"))
    if advert:
        told = filter(None, (as_text(advert.get(k)) for k in ("headline", "body", "source_url")))
        quoted.append(Quoted(source="From an advertisement", text="\n".join(told)))
    return replace(content, lines=tuple(lines), quoted=tuple(quoted))


_READERS: Mapping[str, Callable[[Json], WhatsAppContent]] = {
    "text": _read_text,
    "location": _read_location,
    "interactive": _read_interactive,
    "button": _read_template_button,
    "reaction": _read_reaction,
    "order": _read_order,
}
