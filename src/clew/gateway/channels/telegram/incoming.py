"""Content of a Telegram message as text: its own text, and a line per other part; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.payload import Json, as_object, as_objects
from clew.core.payload import as_list as each_of
from clew.core.quotation import (
    AGENT,
    OwnLine,
    Quoted,
    clean_name,
    format_item,
    format_recording,
    format_titled_item,
    quote_forwarded,
    quote_reply,
)
from clew.gateway.channels.telegram.files import parse_file, parse_photo
from clew.gateway.channels.telegram.rich_messages import read_rich_files, read_rich_text
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clew.core.channel_events import IncomingFile


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Metadata fields of a message, which are not content.
_METADATA_FIELDS = _split_words(
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
#: Fields of service messages, which have no author.
SERVICE_FIELDS = _split_words(
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


def get_display_name(user: Json | None) -> str:
    """Return the display name of a user or chat."""
    user = user or {}
    full = " ".join(filter(None, [user.get("first_name"), user.get("last_name")]))
    return full or str(user.get("title") or user.get("username") or "")


class TelegramContent(Record):
    """The content of a message."""

    text: str = ""
    lines: tuple[str, ...] = ()
    files: tuple[IncomingFile, ...] = ()
    unsupported: tuple[str, ...] = ()
    #: Kinds of service messages.
    service: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.text or self.lines or self.files or self.unsupported)

    def describe(self) -> str:
        """Return all of the content as text, for a quotation; files are named."""
        return "\n".join(
            filter(None, [self.text, *self.lines, *map(_describe_unsupported, self.unsupported)])
        )


def _describe_unsupported(kind: str) -> str:
    return format_item(f"unsupported: {kind}")


def read_content(message: Json, *, quoted: bool = False) -> TelegramContent:
    """
    Return the content of a message.

    In a ``quoted`` message the files are named, too; otherwise each has a line of its own
    anyway.
    """
    keys = {key for key, value in message.items() if value is not None}
    told = [key for key in _PART_READERS if key in keys]
    if "venue" in told and "location" in told:
        told.remove("location")
    lines = [_PART_READERS[key](message[key]) for key in told]
    media = [_MEDIA_READERS[key](message[key]) for key in _MEDIA_READERS if key in keys]
    if quoted:
        media += _describe_media(message)
    files = _read_files(message)
    text = expand_links(message.get("text") or message.get("caption") or "", get_entities(message))
    rich: Json | None = message.get("rich_message")
    if rich is not None:
        text = "\n\n".join(filter(None, [text, read_rich_text(rich)]))
        files += read_rich_files(rich)
    known = {
        *_METADATA_FIELDS,
        *SERVICE_FIELDS,
        *_PART_READERS,
        *_MEDIA_READERS,
        *_MEDIA,
        "photo",
        "rich_message",
    }
    empty = not (text or lines or media or files)
    service = tuple(sorted(keys & SERVICE_FIELDS))
    strange = sorted(keys - known) if empty and not service else ()
    return TelegramContent(
        text=text,
        lines=(*media, *lines),
        files=files,
        unsupported=tuple(strange),
        service=service if empty else (),
    )


def get_entities(message: Json) -> Sequence[Json]:
    """Return the entities of a message's text or caption."""
    return as_objects(message.get("entities" if message.get("text") else "caption_entities"))


def expand_links(text: str, entities: Sequence[Json]) -> str:
    """Return the text with the address after each link's label, and with marked quotations."""
    units = text.encode("utf-16-le", "surrogatepass")
    # From the end, so that the offsets of the others stay valid.
    for entity in sorted(entities, key=lambda one: -int(one.get("offset", 0))):
        begins = 2 * int(entity.get("offset", 0))
        ends = begins + 2 * int(entity.get("length", 0))
        label = units[begins:ends].decode("utf-16-le", "replace")
        written = _expand_entity(entity, label)
        if written != label:
            units = units[:begins] + written.encode("utf-16-le", "replace") + units[ends:]
    return units.decode("utf-16-le", "replace")


def _expand_entity(entity: Json, label: str) -> str:
    kind = entity.get("type")
    if kind == "text_link" and entity.get("url") and entity["url"] != label:
        return f"{label} ({entity['url']})"
    if kind in ("blockquote", "expandable_blockquote"):
        return "\n".join(f"> {line}" for line in label.splitlines())
    return label


# Quoted messages


def get_origin_name(origin: Json) -> str:
    """Return the name of a message's original author, as far as Telegram reveals it."""
    match origin.get("type"):
        case "user":
            return get_display_name(origin.get("sender_user"))
        case "hidden_user":
            return str(origin.get("sender_user_name") or "")
        case "chat" | "channel":
            chat = as_object(origin.get("sender_chat") or origin.get("chat"))
            signed = origin.get("author_signature")
            return f"{get_display_name(chat)} ({signed})" if signed else get_display_name(chat)
        case _:
            return ""


def read_forward(message: Json, content: TelegramContent) -> Quoted | None:
    """Return a forwarded message as a quotation; ``None`` for the sender's own message."""
    origin: Json | None = message.get("forward_origin")
    if origin is not None:
        return quote_forwarded(get_origin_name(origin), content.describe())
    if message.get("is_automatic_forward"):
        return quote_forwarded(get_display_name(message.get("sender_chat")), content.describe())
    if any(key in message for key in ("forward_date", "forward_from", "forward_from_chat")):
        # Fields of older versions of the API.
        first = message.get("forward_from") or message.get("forward_from_chat")
        name = get_display_name(first) or message.get("forward_sender_name")
        return quote_forwarded(name, content.describe())
    if bot := message.get("via_bot"):
        source = f"Sent with the help of {clean_name(get_display_name(bot))}"
        return Quoted(source=source, text=content.describe())
    return None


def read_replies(message: Json, *, me: int) -> tuple[Quoted, ...]:
    """Return the messages that a message replies to, as quotations."""
    quote = as_object(message.get("quote"))
    part = expand_links(quote.get("text") or "", as_objects(quote.get("entities")))
    found: list[Quoted] = []
    before: Json | None = message.get("reply_to_message")
    elsewhere: Json | None = message.get("external_reply")
    if before is not None and not is_topic_reply(message):
        found.append(quote_reply(_author_name(before, me), part or _describe_replied(before)))
    elif elsewhere is not None:
        said = part or read_content(elsewhere, quoted=True).describe()
        found.append(quote_reply(get_origin_name(as_object(elsewhere.get("origin"))), said))
    elif part:
        found.append(quote_reply("", part))
    if story := message.get("reply_to_story"):
        found.append(quote_reply(get_display_name(story.get("chat")), format_item("story")))
    return tuple(found)


def is_topic_reply(message: Json) -> bool:
    """
    Return whether a reply only reflects the topic.

    Every message of a topic is formally a reply to the topic's first message.
    """
    before = as_object(message.get("reply_to_message"))
    first = "forum_topic_created" in before or (
        before.get("message_id") == message.get("message_thread_id")
    )
    return first and bool(message.get("is_topic_message") or "forum_topic_created" in before)


def _author_name(message: Json, me: int) -> str:
    user = as_object(message.get("from"))
    if user.get("id") == me:
        return AGENT
    return get_display_name(message.get("sender_chat") or user)


def _describe_replied(message: Json) -> str:
    content = read_content(message, quoted=True)
    if content.service:
        return format_item(content.service[0].replace("_", " "))
    return content.describe() or format_item("a message that cannot be seen")


# Files and other parts


def _read_files(message: Json) -> tuple[IncomingFile, ...]:
    if photos := message.get("photo"):
        return (parse_photo(photos),)
    # An animation is also sent as a document: the first one found is what was sent.
    for kind in ("animation", *_MEDIA):
        if media := message.get(kind):
            return (parse_file(media, *_MEDIA[kind]),)
    return ()


def _describe_media(message: Json) -> list[str]:
    if message.get("photo"):
        return [format_item("photo")]
    if (document := message.get("document")) and not message.get("animation"):
        return [format_item("file", document.get("file_name") or "")]
    return []


def _format_coordinates(place: Json) -> str:
    return f"{place.get('latitude')}, {place.get('longitude')}"


def _describe_location(place: Json) -> str:
    kind = "live location" if place.get("live_period") else "location"
    return OwnLine(format_item(kind, _format_coordinates(place)))


def _describe_venue(venue: Json) -> str:
    place = as_object(venue.get("location"))
    return format_item(
        "venue", venue.get("title"), venue.get("address"), _format_coordinates(place)
    )


def _describe_contact(contact: Json) -> str:
    return format_item("contact", get_display_name(contact), contact.get("phone_number"))


def _describe_poll(poll: Json) -> str:
    options = as_objects(poll.get("options"))
    choices = " / ".join(str(one.get("text", "")) for one in options)
    kind = "quiz" if poll.get("type") == "quiz" else "poll"
    return format_titled_item(kind, poll.get("question"), poll.get("description"), choices)


def _describe_checklist(checklist: Json) -> str:
    tasks = as_objects(checklist.get("tasks"))
    listed = " / ".join(f"{'☑' if _is_done(one) else '☐'} {one.get('text', '')}" for one in tasks)
    return format_titled_item("checklist", checklist.get("title"), listed)


def _is_done(task: Json) -> bool:
    return bool(task.get("completion_date"))


def _describe_done_tasks(told: Json) -> str:
    checklist = as_object(as_object(told.get("checklist_message")).get("checklist"))
    names = {task.get("id"): task.get("text") for task in as_objects(checklist.get("tasks"))}

    def format_tasks(key: str) -> str:
        return " / ".join(str(names.get(each) or each) for each in each_of(told.get(key)))

    done, undone = (
        format_tasks("marked_as_done_task_ids"),
        format_tasks("marked_as_not_done_task_ids"),
    )
    return format_titled_item(
        "checklist",
        checklist.get("title"),
        done and f"done: {done}",
        undone and f"not done: {undone}",
    )


def _describe_added_tasks(told: Json) -> str:
    checklist = as_object(as_object(told.get("checklist_message")).get("checklist"))
    added = " / ".join(str(one.get("text", "")) for one in as_objects(told.get("tasks")))
    return format_titled_item("checklist", checklist.get("title"), f"added: {added}")


def _describe_invoice(invoice: Json) -> str:
    price = f"{invoice.get('total_amount', '')} {invoice.get('currency', '')}"
    return format_titled_item("invoice", invoice.get("title"), invoice.get("description"), price)


def _payment_reader(what: str) -> Callable[[Json], str]:
    return lambda told: format_item(
        what, f"{told.get('total_amount', '')} {told.get('currency', '')}"
    )


def _describe_paid_media(told: Json) -> str:
    kinds = " / ".join(str(one.get("type", "?")) for one in as_objects(told.get("paid_media")))
    return format_titled_item("paid media", kinds, f"{told.get('star_count', '?')} stars")


def _describe_giveaway(told: Json) -> str:
    return format_titled_item(
        "giveaway", told.get("prize_description"), f"{told.get('winner_count')} winners"
    )


def _describe_winners(told: Json) -> str:
    names = " / ".join(map(get_display_name, as_objects(told.get("winners"))))
    return format_titled_item("giveaway winners", told.get("prize_description"), names)


def _describe_gift(told: Json) -> str:
    return format_titled_item("gift", told.get("text") or "")


def _describe_unique_gift(told: Json) -> str:
    gift = as_object(told.get("gift"))
    return format_titled_item("gift", gift.get("base_name") or gift.get("name"))


def _describe_shared_users(told: Json) -> str:
    users = as_objects(told.get("users"))
    listed = " / ".join(
        f"{get_display_name(one)} {one.get('user_id', '')}".strip() for one in users
    )
    return format_titled_item("shared people", listed)


def _describe_shared_chat(told: Json) -> str:
    return format_item("shared chat", told.get("title"), told.get("chat_id"))


def _describe_audio(audio: Json) -> str:
    performer, title = audio.get("performer"), audio.get("title")
    which = " - ".join(filter(None, [performer, title])) or audio.get("file_name") or ""
    return format_recording(
        f"audio: {' '.join(which.split())}" if which else "audio", audio.get("duration")
    )


def _recording_reader(what: str) -> Callable[[Json], str]:
    return lambda media: format_recording(what, media.get("duration"))


#: Readers for media: the line that describes a file.
_MEDIA_READERS: Mapping[str, Callable[[Json], str]] = {
    "voice": _recording_reader("voice message"),
    "audio": _describe_audio,
    "video": _recording_reader("video"),
    "video_note": _recording_reader("video message"),
    "animation": _recording_reader("animation"),
    "live_photo": _recording_reader("live photo"),
}
_PART_READERS: Mapping[str, Callable[[Json], str]] = {
    "sticker": lambda told: OwnLine(format_item("sticker", told.get("emoji"))),
    "location": _describe_location,
    "venue": _describe_venue,
    "contact": _describe_contact,
    "dice": lambda told: OwnLine(
        format_item("dice", f"{told.get('emoji', '')} {told.get('value', '')}")
    ),
    "poll": _describe_poll,
    "checklist": _describe_checklist,
    "checklist_tasks_done": _describe_done_tasks,
    "checklist_tasks_added": _describe_added_tasks,
    "story": lambda told: format_item("story", get_display_name(told.get("chat"))),
    "game": lambda told: format_titled_item("game", told.get("title"), told.get("description")),
    "invoice": _describe_invoice,
    "successful_payment": _payment_reader("payment"),
    "refunded_payment": _payment_reader("refunded payment"),
    "paid_media": _describe_paid_media,
    "giveaway": _describe_giveaway,
    "giveaway_winners": _describe_winners,
    "gift": _describe_gift,
    "gift_upgrade_sent": _describe_gift,
    "unique_gift": _describe_unique_gift,
    "users_shared": _describe_shared_users,
    "chat_shared": _describe_shared_chat,
    "web_app_data": lambda told: format_titled_item(
        "web app", told.get("button_text"), told.get("data")
    ),
    "passport_data": lambda _: format_item("passport data"),
}
