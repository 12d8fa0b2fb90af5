"""Speech of answers: wanted in the commit of the answer, made and sent after its text."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import structlog

from clew.core.channel_events import OutboundMessage, dump_message, load_message
from clew.core.delivery import DeliveryKind, NewDelivery
from clew.core.file_reading import was_read_as
from clew.core.ids import ConversationId, DeliveryId
from clew.core.route import Route
from clew.core.sent_files import MAX_SENT_BYTES, SentFile
from clew.core.side_answer import SideAnswer
from clew.core.turn import TurnOutcome
from clew.features.voice.client import VoiceFailed, post
from clew.features.voice.hearing import price_audio
from clew.features.voice.recordings import find_format, measure_millis
from clew.features.voice.speakable import make_speakable
from clew.record import Record
from clew.store.transactions import attachments, inbox
from clew.store.transactions.conversations import get_conversation
from clew.store.transactions.deliveries import add_delivery
from clew.store.transactions.usage import record_answer
from clew.wording import find_file_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.route import RouteKey
    from clew.core.turn import Turn
    from clew.features.voice.settings import VoiceService
    from clew.plugin import FeatureContext
    from clew.store.contract import Tx

log = structlog.get_logger(__name__)

_MODEL: Final = "gpt-4o-mini-tts"
#: Milliseconds after which an answer whose speech is not there was left by a process that died,
#: and after which nobody wants it any more.
_LEFT_AFTER, _LATE_AFTER = 120_000, 3_600_000
_NAME: Final = {"ogg": "answer.ogg", "mp3": "answer.mp3", "wav": "answer.wav"}
_TYPES: Final = {"ogg": "audio/ogg", "mp3": "audio/mpeg", "wav": "audio/wav"}


class AnswerToSpeak(Record):
    """An answer that is to be spoken, as it is delivered."""

    delivery: DeliveryId
    route: RouteKey
    text: str


def find_mode(t: Tx, scope: str) -> str | None:
    """Return what a person or chat chose; ``None`` if nothing."""
    return t.fetch_value("SELECT mode FROM voice_mode WHERE scope = $1", scope)


def choose_mode(t: Tx, scope: str, mode: str) -> None:
    """Store what a person or chat chose."""
    t.execute(
        """
        INSERT INTO voice_mode (scope, mode) VALUES ($1, $2)
        ON CONFLICT (scope) DO UPDATE SET mode = excluded.mode
        """,
        scope,
        mode,
    )


def find_last_failure(t: Tx, conversation: str) -> str | None:
    """Return why the last answer of a conversation was not spoken; ``None`` if it was."""
    row = t.fetch_one(
        "SELECT error FROM voice_speech WHERE conversation = $1 ORDER BY at DESC LIMIT 1",
        conversation,
    )
    return None if row is None else row[0]


def want_speech(t: Tx, turn: Turn, mode: str) -> None:
    """Store that the answer of a turn is to be spoken, if the person wants it."""
    if turn.outcome is not TurnOutcome.ANSWERED:
        return
    chosen = find_mode(t, get_conversation(t, turn.conversation_id).scope) or mode
    if chosen == "off":
        return
    said = inbox.read_payloads(t, turn.id)
    if chosen == "auto" and not any(was_read_as(one, "transcript") for one in said):
        return
    t.execute(
        """
        INSERT INTO voice_speech (turn, conversation, state, at) VALUES ($1, $2, 'wanted', $3)
        ON CONFLICT (turn) DO NOTHING
        """,
        turn.id,
        turn.conversation_id,
        t.now,
    )


async def speak_answers(
    context: FeatureContext, service: VoiceService, conversation: ConversationId
) -> None:
    """Speak the answers of a conversation that are to be spoken."""
    for turn in await context.store.read(_list_wanted, conversation):
        await _speak(context, service, conversation, turn)


async def speak_left_answers(context: FeatureContext, service: VoiceService) -> None:
    """Speak the answers that a process left which has died; old ones are given up."""
    await context.store.write(_give_up_late)
    for conversation, turn in await context.store.read(_list_left):
        await _speak(context, service, conversation, turn)


async def _speak(
    context: FeatureContext, service: VoiceService, conversation: ConversationId, turn: str
) -> None:
    if not await context.store.write(_claim, turn):
        return
    answers = await context.store.read(_list_answers, turn)
    error: str | None = None
    for answer in answers:
        platform = Route.parse(answer.route).platform
        if find_file_limit(platform, 1, context.largest_files.get(platform)) is not None:
            continue  # the text has all
        if not (words := make_speakable(answer.text)):
            continue
        try:
            await _speak_answer(context, service, conversation, answer, words)
        except VoiceFailed as failed:
            error = str(failed)
            log.warning("answer_not_spoken", conversation=conversation, error=error)
    await context.store.write(_end, turn, error)


async def _speak_answer(
    context: FeatureContext,
    service: VoiceService,
    conversation: ConversationId,
    answer: AnswerToSpeak,
    words: str,
) -> None:
    model = service.model or _MODEL
    asked = {"model": model, "voice": service.voice, "input": words, "response_format": "opus"}
    content = await post(service, "audio/speech", json=asked)
    format = find_format(content)
    if format not in _NAME or len(content) > MAX_SENT_BYTES:
        raise VoiceFailed("the service answered with something that is no recording")
    cost = price_audio(measure_millis(content), service.price)
    usage = SideAnswer(text="", is_complete=True, model=model, cost_micros=cost)
    await context.store.write(_send, conversation, answer, format, content, usage)


def _send(
    t: Tx,
    conversation: ConversationId,
    answer: AnswerToSpeak,
    format: str,
    content: bytes,
    usage: SideAnswer,
) -> None:
    """Store the speech and its delivery behind that of the text; repeating it changes nothing."""
    key = hashlib.sha256(f"{answer.delivery} spoken".encode()).hexdigest()
    file = SentFile(
        attachment=f"att_{key[:26]}",
        name=_NAME[format],
        media_type=_TYPES[format],
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )
    new = NewDelivery(
        id=DeliveryId(f"{answer.delivery}.spoken"),
        route=answer.route,
        kind=DeliveryKind.TEXT,
        body=dump_message(OutboundMessage(markup=False, files=(file,))),
    )
    if t.exists("SELECT 1 FROM delivery WHERE id = $1", new.id):
        return
    attachments.store_content(
        t,
        conversation,
        file.attachment,
        name=file.name,
        media_type=file.media_type,
        content=content,
    )
    add_delivery(t, conversation, new)
    record_answer(t, conversation, usage, id=f"use_{key[:26]}", purpose="speech")


def _list_wanted(t: Tx, conversation: str) -> list[str]:
    return t.fetch_column(
        "SELECT turn FROM voice_speech WHERE conversation = $1 AND state = 'wanted' ORDER BY at",
        conversation,
    )


def _list_left(t: Tx) -> Sequence[tuple[Any, ...]]:
    return t.fetch_all(
        """
        SELECT conversation, turn FROM voice_speech
        WHERE state IN ('wanted', 'making') AND at < $1 ORDER BY at
        """,
        t.now - _LEFT_AFTER,
    )


def _give_up_late(t: Tx) -> None:
    t.execute(
        """
        UPDATE voice_speech SET state = 'failed', error = 'it would have come an hour late'
        WHERE state IN ('wanted', 'making') AND at < $1
        """,
        t.now - _LATE_AFTER,
    )


def _claim(t: Tx, turn: str) -> bool:
    return bool(
        t.execute(
            """
            UPDATE voice_speech SET state = 'making'
            WHERE turn = $1 AND (state = 'wanted' OR (state = 'making' AND at < $2))
            """,
            turn,
            t.now - _LEFT_AFTER,
        )
    )


def _list_answers(t: Tx, turn: str) -> list[AnswerToSpeak]:
    found = t.fetch_all(
        "SELECT id, route, body FROM delivery WHERE turn_id = $1 AND kind = 'answer' ORDER BY n",
        turn,
    )
    return [
        AnswerToSpeak(delivery=id, route=route, text=load_message(body).text)
        for id, route, body in found
    ]


def _end(t: Tx, turn: str, error: str | None) -> None:
    state = "sent" if error is None else "failed"
    t.execute("UPDATE voice_speech SET state = $2, error = $3 WHERE turn = $1", turn, state, error)
