"""The chat command ``/voice``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.core.scope import LOCAL
from clew.features.voice.settings import MODES, STT, TTS
from clew.features.voice.speaking import choose_mode, find_last_failure, find_mode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.features.voice.settings import VoiceService
    from clew.plugin import CommandCall

_MEANINGS: Final = {
    "auto": "answers to spoken messages are also spoken",
    "on": "every answer is also spoken",
    "off": "no answer is spoken",
}


async def run_voice_command(
    call: CommandCall, argument: str, services: Mapping[str, VoiceService]
) -> str:
    """Show or choose which answers are spoken to a person or chat."""
    mode = argument.strip().lower()
    if mode and mode not in MODES:
        return f"/voice {argument}: write /voice on, /voice off or /voice auto."
    if TTS not in services:
        return f"No service speaks here: [voice.{TTS}] in the settings names one.{_hears(services)}"
    if call.viewer == LOCAL:
        return "Answers are spoken in chats only: write /voice there."
    if mode:
        await call.services.store.write(choose_mode, call.viewer, mode)
    else:
        mode = await call.services.store.read(find_mode, call.viewer) or services[TTS].mode
    return f"Voice is {mode}: {_MEANINGS[mode]}.{await _describe_failure(call)}{_hears(services)}"


async def _describe_failure(call: CommandCall) -> str:
    if call.conversation_id is None:
        return ""
    why = await call.services.store.read(find_last_failure, call.conversation_id)
    return "" if why is None else f" The last one was not: {why}."


def _hears(services: Mapping[str, VoiceService]) -> str:
    return "" if STT in services else f" Recordings are not read: [voice.{STT}] is not set."
