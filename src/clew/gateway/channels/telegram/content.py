"""What a message of Telegram holds, in words: its text, a line for each other thing; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core.chat import IncomingFile
from clew.core.quotation import (
    Quoted,
    clean_name,
    format_item,
    format_recording,
    format_titled_item,
    quote_forwarded,
    quote_reply,
)
from clew.gateway.channels.telegram.rich import rich_files, rich_text
from clew.gateway.payload import Json, obj, objs
from clew.gateway.payload import each as each_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: What a message says about itself, besides what somebody sent with it.
_ABOUT = _words(
    """
    message_id message_thread_id direct_messages_topic from sender_chat sender_boost_count
    sender_business_bot sender_tag date guest_query_id business_connection_id chat forward_origin
    is_topic_message is_automatic_forward reply_to_message external_reply quote reply_to_story
    reply_to_checklist_task_id reply_to_poll_option_id via_bot guest_bot_caller_user
    guest_bot_caller_chat edit_date has_protected_content is_from_offline is_paid_post
    media_group_id author_signature paid_star_count entities link_preview_options
    suggested_post_info effect_id caption_entities show_caption_above_media has_media_spoiler
    reply_markup receiver_user ephemeral_message_id text caption forward_from forward_from_chat
    forward_from_message_id forward_signature forward_sender_name forward_date
    """
)
#: What Telegram reports in the form of a message, and nobody says to anybody.
SERVICE = _words(
    """
    new_chat_members left_chat_member new_chat_title new_chat_photo delete_chat_photo
    group_chat_created supergroup_chat_created channel_chat_created migrate_to_chat_id
    migrate_from_chat_id pinned_message message_auto_delete_timer_changed connected_website
    write_access_allowed proximity_alert_triggered boost_added chat_background_set
    forum_topic_created forum_topic_edited forum_topic_closed forum_topic_reopened
    general_forum_topic_hidden general_forum_topic_unhidden giveaway_created giveaway_completed
    video_chat_scheduled video_chat_started video_chat_ended video_chat_participants_invited
    voice_chat_scheduled voice_chat_started voice_chat_ended voice_chat_participants_invited
    paid_message_price_changed direct_message_price_changed managed_bot_created chat_owner_left
    chat_owner_changed community_chat_added community_chat_removed poll_option_added
    poll_option_deleted suggested_post_approved suggested_post_approval_failed
    suggested_post_declined suggested_post_paid suggested_post_refunded new_chat_member
    """
)

_MEDIA = {
    "document": ("file", "application/octet-stream"),
    "voice": ("voice.ogg", "audio/ogg"),
    "audio": ("audio.mp3", "audio/mpeg"),
    "video": ("video.mp4", "video/mp4"),
    "video_note": ("video.mp4", "video/mp4"),
    "animation": ("animation.mp4", "video/mp4"),
}


def name_of(user: Json | None) -> str:
    """As somebody calls themselves."""
    user = user or {}
    full = " ".join(filter(None, [user.get("first_name"), user.get("last_name")]))
    return full or str(user.get("title") or user.get("username") or "")


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """What somebody sent."""

    text: str = ""
    lines: tuple[str, ...] = ()
    files: tuple[IncomingFile, ...] = ()
    unsupported: tuple[str, ...] = ()
    #: Kinds of service events.
    service: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.text or self.lines or self.files or self.unsupported)

    def described(self) -> str:
        """All of it in words, for a quotation: files are named."""
        return "\n".join(filter(None, [self.text, *self.lines, *map(_unknown, self.unsupported)]))


def _unknown(kind: str) -> str:
    return format_item(f"unsupported: {kind}")


def content_of(message: Json, *, quoted: bool = False) -> Content:
    """
    What a message holds.

    In a ``quoted`` one its files are named, too; else each has a line of its own anyway.
    """
    keys = {key for key, value in message.items() if value is not None}
    told = [key for key in _READERS if key in keys]
    if "venue" in told and "location" in told:
        told.remove("location")
    lines = [_READERS[key](message[key]) for key in told]
    media = [_RECORDED[key](message[key]) for key in _RECORDED if key in keys]
    if quoted:
        media += _plain_media(message)
    files = _files(message)
    text = linked(message.get("text") or message.get("caption") or "", entities_of(message))
    rich: Json | None = message.get("rich_message")
    if rich is not None:
        text = "\n\n".join(filter(None, [text, rich_text(rich)]))
        files += rich_files(rich)
    known = {*_ABOUT, *SERVICE, *_READERS, *_RECORDED, *_MEDIA, "photo", "rich_message"}
    empty = not (text or lines or media or files)
    service = tuple(sorted(keys & SERVICE))
    strange = sorted(keys - known) if empty and not service else ()
    return Content(
        text=text,
        lines=(*media, *lines),
        files=files,
        unsupported=tuple(strange),
        service=service if empty else (),
    )


def entities_of(message: Json) -> Sequence[Json]:
    """The formats of a message's text."""
    return objs(message.get("entities" if message.get("text") else "caption_entities"))


def linked(text: str, entities: Sequence[Json]) -> str:
    """The text with the address behind each label of a link, and quoted lines marked as such."""
    units = text.encode("utf-16-le", "surrogatepass")
    # From the end, so that the places of the others stay.
    for entity in sorted(entities, key=lambda one: -int(one.get("offset", 0))):
        begins = 2 * int(entity.get("offset", 0))
        ends = begins + 2 * int(entity.get("length", 0))
        label = units[begins:ends].decode("utf-16-le", "replace")
        written = _rewritten(entity, label)
        if written != label:
            units = units[:begins] + written.encode("utf-16-le", "replace") + units[ends:]
    return units.decode("utf-16-le", "replace")


def _rewritten(entity: Json, label: str) -> str:
    kind = entity.get("type")
    if kind == "text_link" and entity.get("url") and entity["url"] != label:
        return f"{label} ({entity['url']})"
    if kind in ("blockquote", "expandable_blockquote"):
        return "\n".join(f"> {line}" for line in label.splitlines())
    return label


# What came with it


def origin_name(origin: Json) -> str:
    """Who wrote a message first, as far as Telegram says."""
    match origin.get("type"):
        case "user":
            return name_of(origin.get("sender_user"))
        case "hidden_user":
            return str(origin.get("sender_user_name") or "")
        case "chat" | "channel":
            chat = obj(origin.get("sender_chat") or origin.get("chat"))
            signed = origin.get("author_signature")
            return f"{name_of(chat)} ({signed})" if signed else name_of(chat)
        case _:
            return ""


def forward_of(message: Json, content: Content) -> Quoted | None:
    """A message that was passed on, as a quotation; ``None`` for one of the sender's own."""
    origin: Json | None = message.get("forward_origin")
    if origin is not None:
        return quote_forwarded(origin_name(origin), content.described())
    if message.get("is_automatic_forward"):
        return quote_forwarded(name_of(message.get("sender_chat")), content.described())
    if any(key in message for key in ("forward_date", "forward_from", "forward_from_chat")):
        # As servers of older versions of the API tell it.
        first = message.get("forward_from") or message.get("forward_from_chat")
        name = name_of(first) or message.get("forward_sender_name")
        return quote_forwarded(name, content.described())
    if bot := message.get("via_bot"):
        source = f"Sent with the help of {clean_name(name_of(bot))}"
        return Quoted(source=source, text=content.described())
    return None


def replies_of(message: Json, *, me: int) -> tuple[Quoted, ...]:
    """What a message answers."""
    quote = obj(message.get("quote"))
    part = linked(quote.get("text") or "", objs(quote.get("entities")))
    found: list[Quoted] = []
    before: Json | None = message.get("reply_to_message")
    elsewhere: Json | None = message.get("external_reply")
    if before is not None and not begins_topic(message):
        found.append(quote_reply(_author(before, me), part or _replied_to(before)))
    elif elsewhere is not None:
        said = part or content_of(elsewhere, quoted=True).described()
        found.append(quote_reply(origin_name(obj(elsewhere.get("origin"))), said))
    elif part:
        found.append(quote_reply("", part))
    if story := message.get("reply_to_story"):
        found.append(quote_reply(name_of(story.get("chat")), format_item("story")))
    return tuple(found)


def begins_topic(message: Json) -> bool:
    """Whether it is a reply only in form: each message of a topic replies to the topic's first."""
    before = obj(message.get("reply_to_message"))
    first = "forum_topic_created" in before or (
        before.get("message_id") == message.get("message_thread_id")
    )
    return first and bool(message.get("is_topic_message") or "forum_topic_created" in before)


def _author(message: Json, me: int) -> str:
    user = obj(message.get("from"))
    if user.get("id") == me:
        return "you"
    return name_of(message.get("sender_chat") or user)


def _replied_to(message: Json) -> str:
    content = content_of(message, quoted=True)
    if content.service:
        return format_item(content.service[0].replace("_", " "))
    return content.described() or format_item("a message that cannot be seen")


# What is no text


def _files(message: Json) -> tuple[IncomingFile, ...]:
    if photos := message.get("photo"):
        return (photo_file(photos),)
    # An animation comes as a document, too: the first that is there is what was sent.
    for kind in ("animation", *_MEDIA):
        if media := message.get(kind):
            return (file_of(media, *_MEDIA[kind]),)
    return ()


def photo_file(sizes: Sequence[Json]) -> IncomingFile:
    """The largest form of a photo."""
    return file_of(max(sizes, key=lambda size: size.get("width", 0)), "photo.jpg", "image/jpeg")


def file_of(media: Json, name: str, media_type: str) -> IncomingFile:
    return IncomingFile(
        id=media["file_id"],
        name=media.get("file_name") or name,
        media_type=media.get("mime_type") or media_type,
        size=media.get("file_size"),
    )


def _plain_media(message: Json) -> list[str]:
    if message.get("photo"):
        return [format_item("photo")]
    if (document := message.get("document")) and not message.get("animation"):
        return [format_item("file", document.get("file_name") or "")]
    return []


def _place(place: Json) -> str:
    return f"{place.get('latitude')}, {place.get('longitude')}"


def _location(place: Json) -> str:
    return format_item("live location" if place.get("live_period") else "location", _place(place))


def _venue(venue: Json) -> str:
    place = obj(venue.get("location"))
    return format_item("venue", venue.get("title"), venue.get("address"), _place(place))


def _contact(contact: Json) -> str:
    return format_item("contact", name_of(contact), contact.get("phone_number"))


def _poll(poll: Json) -> str:
    options = objs(poll.get("options"))
    choices = " / ".join(str(one.get("text", "")) for one in options)
    kind = "quiz" if poll.get("type") == "quiz" else "poll"
    return format_titled_item(kind, poll.get("question"), poll.get("description"), choices)


def _checklist(checklist: Json) -> str:
    tasks = objs(checklist.get("tasks"))
    listed = " / ".join(f"{'☑' if _is_done(one) else '☐'} {one.get('text', '')}" for one in tasks)
    return format_titled_item("checklist", checklist.get("title"), listed)


def _is_done(task: Json) -> bool:
    return bool(task.get("completion_date"))


def _tasks_done(told: Json) -> str:
    checklist = obj(obj(told.get("checklist_message")).get("checklist"))
    names = {task.get("id"): task.get("text") for task in objs(checklist.get("tasks"))}

    def listed(key: str) -> str:
        return " / ".join(str(names.get(each) or each) for each in each_of(told.get(key)))

    done, undone = listed("marked_as_done_task_ids"), listed("marked_as_not_done_task_ids")
    return format_titled_item(
        "checklist",
        checklist.get("title"),
        done and f"done: {done}",
        undone and f"not done: {undone}",
    )


def _tasks_added(told: Json) -> str:
    checklist = obj(obj(told.get("checklist_message")).get("checklist"))
    added = " / ".join(str(one.get("text", "")) for one in objs(told.get("tasks")))
    return format_titled_item("checklist", checklist.get("title"), f"added: {added}")


def _invoice(invoice: Json) -> str:
    price = f"{invoice.get('total_amount', '')} {invoice.get('currency', '')}"
    return format_titled_item("invoice", invoice.get("title"), invoice.get("description"), price)


def _paid(what: str) -> Callable[[Json], str]:
    return lambda told: format_item(
        what, f"{told.get('total_amount', '')} {told.get('currency', '')}"
    )


def _paid_media(told: Json) -> str:
    kinds = " / ".join(str(one.get("type", "?")) for one in objs(told.get("paid_media")))
    return format_titled_item("paid media", kinds, f"{told.get('star_count', '?')} stars")


def _giveaway(told: Json) -> str:
    return format_titled_item(
        "giveaway", told.get("prize_description"), f"{told.get('winner_count')} winners"
    )


def _winners(told: Json) -> str:
    names = " / ".join(map(name_of, objs(told.get("winners"))))
    return format_titled_item("giveaway winners", told.get("prize_description"), names)


def _gift(told: Json) -> str:
    return format_titled_item("gift", told.get("text") or "")


def _unique_gift(told: Json) -> str:
    gift = obj(told.get("gift"))
    return format_titled_item("gift", gift.get("base_name") or gift.get("name"))


def _users(told: Json) -> str:
    users = objs(told.get("users"))
    listed = " / ".join(f"{name_of(one)} {one.get('user_id', '')}".strip() for one in users)
    return format_titled_item("shared people", listed)


def _shared_chat(told: Json) -> str:
    return format_item("shared chat", told.get("title"), told.get("chat_id"))


def _audio(audio: Json) -> str:
    performer, title = audio.get("performer"), audio.get("title")
    which = " - ".join(filter(None, [performer, title])) or audio.get("file_name") or ""
    return format_recording(
        f"audio: {' '.join(which.split())}" if which else "audio", audio.get("duration")
    )


def _recorded(what: str) -> Callable[[Json], str]:
    return lambda media: format_recording(what, media.get("duration"))


#: What comes with a file, and what is told of it besides.
_RECORDED: Mapping[str, Callable[[Json], str]] = {
    "voice": _recorded("voice message"),
    "audio": _audio,
    "video": _recorded("video"),
    "video_note": _recorded("video message"),
    "animation": _recorded("animation"),
    "live_photo": _recorded("live photo"),
}
_READERS: Mapping[str, Callable[[Json], str]] = {
    "sticker": lambda told: format_item("sticker", told.get("emoji")),
    "location": _location,
    "venue": _venue,
    "contact": _contact,
    "dice": lambda told: format_item("dice", f"{told.get('emoji', '')} {told.get('value', '')}"),
    "poll": _poll,
    "checklist": _checklist,
    "checklist_tasks_done": _tasks_done,
    "checklist_tasks_added": _tasks_added,
    "story": lambda told: format_item("story", name_of(told.get("chat"))),
    "game": lambda told: format_titled_item("game", told.get("title"), told.get("description")),
    "invoice": _invoice,
    "successful_payment": _paid("payment"),
    "refunded_payment": _paid("refunded payment"),
    "paid_media": _paid_media,
    "giveaway": _giveaway,
    "giveaway_winners": _winners,
    "gift": _gift,
    "gift_upgrade_sent": _gift,
    "unique_gift": _unique_gift,
    "users_shared": _users,
    "chat_shared": _shared_chat,
    "web_app_data": lambda told: format_titled_item(
        "web app", told.get("button_text"), told.get("data")
    ),
    "passport_data": lambda _: format_item("passport data"),
}
