"""The methods of the Bot API that Clew calls, with the refusals that Telegram gives."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from clew.testing.telegram.world import Json, Message, Refusal, World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LONGEST = 4096
_KNOWN = frozenset(
    {
        "bold", "italic", "underline", "strikethrough", "spoiler", "blockquote", "code", "pre",
        "text_link", "text_mention", "expandable_blockquote",
    }
)  # fmt: skip


def parsed(parameters: Mapping[str, str]) -> Json:
    """The parameters of a call: structures come as JSON in a form."""
    return {name: _value(value) for name, value in parameters.items()}


def _value(text: str) -> Any:
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def send_message(world: World, given: Json) -> Json:
    chat = _writable(world, given)
    text, entities = _checked(given)
    reply: Json = given.get("reply_parameters") or {}
    answered = reply.get("message_id")
    if answered is not None and not reply.get("allow_sending_without_reply"):
        raise Refusal(400, "Bad Request: message to be replied not found")
    n = world.count()
    message = Message(
        id=world.next_id(),
        chat=chat,
        text=text,
        entities=entities,
        thread=_number(given.get("message_thread_id")),
        reply_to=_number(answered),
        buttons=_buttons(given),
        texts=[text],
        sent_n=n,
        changed_n=n,
    )
    world.messages[chat][message.id] = message
    return _told(world, message)


def edit_message_text(world: World, given: Json) -> Json:
    chat = _writable(world, given)
    message = _message(world, chat, given, "message to edit not found")
    text, entities = _checked(given)
    buttons = _buttons(given)
    if (message.text, message.entities, message.buttons) == (text, entities, buttons):
        raise Refusal(
            400,
            "Bad Request: message is not modified: specified new message content and reply markup "
            "are exactly the same as a current content and reply markup of the message",
        )
    message.text, message.entities, message.buttons = text, entities, buttons
    message.texts.append(text)
    message.changed_n = world.count()
    return _told(world, message)


def edit_message_reply_markup(world: World, given: Json) -> Json:
    chat = _writable(world, given)
    message = _message(world, chat, given, "message to edit not found")
    message.buttons = _buttons(given)
    return _told(world, message)


def send_chat_action(world: World, given: Json) -> bool:
    _writable(world, given)
    return True


def answer_callback_query(world: World, given: Json) -> bool:
    if len(given.get("text", "")) > 200:
        raise Refusal(400, "Bad Request: MESSAGE_TOO_LONG")
    world.answered[given["callback_query_id"]] = given.get("text", "")
    return True


def get_file(world: World, given: Json) -> Json:
    if given["file_id"] not in world.files:
        raise Refusal(400, "Bad Request: invalid file_id")
    name, content = world.files[given["file_id"]]
    if len(content) > 20 * 1024 * 1024:
        raise Refusal(400, "Bad Request: file is too big")
    path = f"documents/{given['file_id']}/{name}"
    return {"file_id": given["file_id"], "file_size": len(content), "file_path": path}


def set_my_commands(world: World, given: Json) -> bool:
    for command in given["commands"]:
        if not (1 <= len(command["command"]) <= 32 and 1 <= len(command["description"]) <= 256):
            raise Refusal(400, "Bad Request: BOT_COMMAND_INVALID")
    world.commands = given["commands"]
    return True


def delete_webhook(world: World, given: Json) -> bool:
    return True


METHODS: Mapping[str, Callable[[World, Json], Any]] = {
    "sendMessage": send_message,
    "editMessageText": edit_message_text,
    "editMessageReplyMarkup": edit_message_reply_markup,
    "sendChatAction": send_chat_action,
    "answerCallbackQuery": answer_callback_query,
    "getFile": get_file,
    "setMyCommands": set_my_commands,
    "deleteWebhook": delete_webhook,
}


def _number(value: Any) -> int | None:
    return None if value is None else int(value)


def _writable(world: World, given: Json) -> int:
    chat = int(given["chat_id"])
    if chat not in world.chats:
        raise Refusal(400, "Bad Request: chat not found")
    if chat in world.blocked:
        raise Refusal(403, "Forbidden: bot was blocked by the user")
    if moved := world.chats[chat].get("moved"):
        raise Refusal(
            400,
            "Bad Request: group chat was upgraded to a supergroup chat",
            migrate_to_chat_id=moved,
        )
    return chat


def _message(world: World, chat: int, given: Json, otherwise: str) -> Message:
    message = world.messages[chat].get(int(given["message_id"]))
    if message is None:
        raise Refusal(400, f"Bad Request: {otherwise}")
    return message


def _buttons(given: Json) -> list[list[Json]]:
    markup: Json = given.get("reply_markup") or {}
    rows: list[list[Json]] = markup.get("inline_keyboard", [])
    for row in rows:
        for button in row:
            if not 1 <= len(button["callback_data"].encode()) <= 64:
                raise Refusal(400, "Bad Request: BUTTON_DATA_INVALID")
    return rows


def _checked(given: Json) -> tuple[str, list[Json]]:
    text: str = given.get("text", "")
    if not text.strip():
        raise Refusal(400, "Bad Request: message text is empty")
    units = len(text.encode("utf-16-le")) // 2
    if units > LONGEST:
        raise Refusal(400, "Bad Request: message is too long")
    entities: list[Json] = given.get("entities") or []
    for entity in entities:
        _check_entity(text, units, entity)
    return text, entities


def _check_entity(text: str, units: int, entity: Json) -> None:
    begins, ends = entity["offset"], entity["offset"] + entity["length"]
    if entity["type"] not in _KNOWN:
        raise Refusal(400, f"Bad Request: can't parse entities: unknown {entity['type']}")
    if not 0 <= begins < ends <= units:
        raise Refusal(
            400, f"Bad Request: can't parse entities: entity beginning at {begins} is out of text"
        )
    try:
        text.encode("utf-16-le")[2 * begins : 2 * ends].decode("utf-16-le")
    except UnicodeDecodeError:
        raise Refusal(
            400, "Bad Request: can't parse entities: entity begins or ends in mid character"
        ) from None


def _told(world: World, message: Message) -> Json:
    return {
        "message_id": message.id,
        "date": int(time.time()),
        "chat": world.chats[message.chat],
        "text": message.text,
    }
