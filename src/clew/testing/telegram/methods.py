"""The methods of the Bot API that Clew calls, with Telegram's errors."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from clew.testing.multipart import SentBytes
from clew.testing.telegram.state import FakeTelegramError, Json, TelegramMessage, TelegramState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_LENGTH = 4096
MAX_CAPTION = 1024
_KNOWN_ENTITIES = frozenset(
    {
        "bold", "italic", "underline", "strikethrough", "spoiler", "blockquote", "code", "pre",
        "text_link", "text_mention", "expandable_blockquote",
    }
)  # fmt: skip


def parse_parameters(parameters: Mapping[str, str]) -> Json:
    """Return the parameters of a call: structures are JSON in form fields."""
    return {name: _parse_value(value) for name, value in parameters.items()}


def _parse_value(text: str) -> Any:
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def send_message(world: TelegramState, given: Json) -> Json:
    chat = _writable_chat(world, given)
    text, entities = _validate_text(given)
    reply: Json = given.get("reply_parameters") or {}
    answered = reply.get("message_id")
    if answered is not None and not reply.get("allow_sending_without_reply"):
        raise FakeTelegramError(400, "Bad Request: message to be replied not found")
    n = world.next_number()
    message = TelegramMessage(
        id=world.next_id(),
        chat=chat,
        text=text,
        entities=entities,
        thread=_to_int(given.get("message_thread_id")),
        reply_to=_to_int(answered),
        buttons=_parse_buttons(given),
        texts=[text],
        sent_n=n,
        changed_n=n,
    )
    world.messages[chat][message.id] = message
    return _message_json(world, message)


def send_document(world: TelegramState, given: Json) -> Json:
    chat, content = _writable_chat(world, given), given.get("document")
    if not isinstance(content, bytes) or not content:
        raise FakeTelegramError(400, "Bad Request: there is no document in the request")
    if len(content) > world.max_file_bytes:
        raise FakeTelegramError(413, "Request Entity Too Large")
    text = str(given.get("caption", ""))
    if len(text) > MAX_CAPTION:
        raise FakeTelegramError(400, "Bad Request: message caption is too long")
    n = world.next_number()
    message = TelegramMessage(
        id=world.next_id(),
        chat=chat,
        text=text,
        entities=[],
        thread=_to_int(given.get("message_thread_id")),
        texts=[text],
        document=content.decode(errors="replace"),
        file=SentBytes(str(given.get("document_name", "")), content),
        sent_n=n,
        changed_n=n,
    )
    world.messages[chat][message.id] = message
    return _message_json(world, message)


def edit_message_text(world: TelegramState, given: Json) -> Json:
    chat = _writable_chat(world, given)
    message = _find_message(world, chat, given, "message to edit not found")
    text, entities = _validate_text(given)
    buttons = _parse_buttons(given)
    if (message.text, message.entities, message.buttons) == (text, entities, buttons):
        raise FakeTelegramError(
            400,
            "Bad Request: message is not modified: specified new message content and reply markup "
            "are exactly the same as a current content and reply markup of the message",
        )
    message.text, message.entities, message.buttons = text, entities, buttons
    message.texts.append(text)
    message.changed_n = world.next_number()
    return _message_json(world, message)


def edit_message_reply_markup(world: TelegramState, given: Json) -> Json:
    chat = _writable_chat(world, given)
    message = _find_message(world, chat, given, "message to edit not found")
    message.buttons = _parse_buttons(given)
    return _message_json(world, message)


def send_chat_action(world: TelegramState, given: Json) -> bool:
    _writable_chat(world, given)
    return True


def answer_callback_query(world: TelegramState, given: Json) -> bool:
    if len(given.get("text", "")) > 200:
        raise FakeTelegramError(400, "Bad Request: MESSAGE_TOO_LONG")
    world.callback_answers[given["callback_query_id"]] = given.get("text", "")
    return True


def get_file(world: TelegramState, given: Json) -> Json:
    if given["file_id"] not in world.files:
        raise FakeTelegramError(400, "Bad Request: invalid file_id")
    name, content = world.files[given["file_id"]]
    if len(content) > 20 * 1024 * 1024:
        raise FakeTelegramError(400, "Bad Request: file is too big")
    path = f"documents/{given['file_id']}/{name}"
    return {"file_id": given["file_id"], "file_size": len(content), "file_path": path}


def set_my_commands(world: TelegramState, given: Json) -> bool:
    for command in given["commands"]:
        if not (1 <= len(command["command"]) <= 32 and 1 <= len(command["description"]) <= 256):
            raise FakeTelegramError(400, "Bad Request: BOT_COMMAND_INVALID")
    world.commands = given["commands"]
    return True


def delete_webhook(world: TelegramState, given: Json) -> bool:
    return True


METHODS: Mapping[str, Callable[[TelegramState, Json], Any]] = {
    "sendMessage": send_message,
    "sendDocument": send_document,
    "editMessageText": edit_message_text,
    "editMessageReplyMarkup": edit_message_reply_markup,
    "sendChatAction": send_chat_action,
    "answerCallbackQuery": answer_callback_query,
    "getFile": get_file,
    "setMyCommands": set_my_commands,
    "deleteWebhook": delete_webhook,
}


def _to_int(value: Any) -> int | None:
    return None if value is None else int(value)


def _writable_chat(world: TelegramState, given: Json) -> int:
    chat = int(given["chat_id"])
    if chat not in world.chats:
        raise FakeTelegramError(400, "Bad Request: chat not found")
    if chat in world.blocked:
        raise FakeTelegramError(403, "Forbidden: bot was blocked by the user")
    if moved := world.chats[chat].get("moved"):
        raise FakeTelegramError(
            400,
            "Bad Request: group chat was upgraded to a supergroup chat",
            migrate_to_chat_id=moved,
        )
    return chat


def _find_message(world: TelegramState, chat: int, given: Json, otherwise: str) -> TelegramMessage:
    message = world.messages[chat].get(int(given["message_id"]))
    if message is None:
        raise FakeTelegramError(400, f"Bad Request: {otherwise}")
    return message


def _parse_buttons(given: Json) -> list[list[Json]]:
    markup: Json = given.get("reply_markup") or {}
    rows: list[list[Json]] = markup.get("inline_keyboard", [])
    for row in rows:
        for button in row:
            if not 1 <= len(button["callback_data"].encode()) <= 64:
                raise FakeTelegramError(400, "Bad Request: BUTTON_DATA_INVALID")
    return rows


def _validate_text(given: Json) -> tuple[str, list[Json]]:
    text: str = given.get("text", "")
    if not text.strip():
        raise FakeTelegramError(400, "Bad Request: message text is empty")
    units = len(text.encode("utf-16-le")) // 2
    if units > MAX_LENGTH:
        raise FakeTelegramError(400, "Bad Request: message is too long")
    entities: list[Json] = given.get("entities") or []
    for entity in entities:
        _validate_entity(text, units, entity)
    return text, entities


def _validate_entity(text: str, units: int, entity: Json) -> None:
    begins, ends = entity["offset"], entity["offset"] + entity["length"]
    if entity["type"] not in _KNOWN_ENTITIES:
        raise FakeTelegramError(400, f"Bad Request: can't parse entities: unknown {entity['type']}")
    if not 0 <= begins < ends <= units:
        raise FakeTelegramError(
            400, f"Bad Request: can't parse entities: entity beginning at {begins} is out of text"
        )
    try:
        text.encode("utf-16-le")[2 * begins : 2 * ends].decode("utf-16-le")
    except UnicodeDecodeError:
        raise FakeTelegramError(
            400, "Bad Request: can't parse entities: entity begins or ends in mid character"
        ) from None


def _message_json(world: TelegramState, message: TelegramMessage) -> Json:
    return {
        "message_id": message.id,
        "date": int(time.time()),
        "chat": world.chats[message.chat],
        "text": message.text,
    }
