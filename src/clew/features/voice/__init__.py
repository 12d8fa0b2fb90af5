"""Voice: recordings of people become text, and answers are spoken where they ask for it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clew.features.voice.settings import STT, TTS, VoiceService, find_problems
from clew.plugin import Command
from clew.plugin.declarations import FileReader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.core.file_reading import FileReading
    from clew.core.ids import ConversationId
    from clew.core.turn import Turn
    from clew.features.voice.hearing import Hearing
    from clew.plugin import CommandCall, FeatureContext, Registry
    from clew.plugin.declarations import FileToRead
    from clew.store.contract import Tx


def register(registry: Registry) -> None:
    """Register the feature; without a service, only the command that says so is declared."""
    tables = registry.add_named_settings("voice", VoiceService)
    registry.add_settings_check("voice", find_problems)
    registry.add_migrations(
        f"{__name__}.migrations",
        of_conversation={"voice_transcript": "conversation", "voice_speech": "conversation"},
        of_scope={"voice_mode": "scope"},
    )

    async def run_command(call: CommandCall, argument: str) -> str:
        """Show or choose which answers are spoken."""
        from clew.features.voice import chat_command  # noqa: PLC0415  (declared by every command, needed by few)

        return await chat_command.run_voice_command(call, argument, tables.get())

    registry.add_command(
        Command(
            name="voice",
            help="choose which answers are also spoken, or show it",
            run=run_command,
            arguments="[on|off|auto]",
        )
    )
    registry.declare_late(lambda: _declare_services(registry, tables.get()))


def _declare_services(registry: Registry, services: Mapping[str, VoiceService]) -> None:
    if STT in services:
        _declare_hearing(registry, services[STT])
    if TTS in services:
        _declare_speaking(registry, services[TTS])


def _declare_hearing(registry: Registry, service: VoiceService) -> None:
    made: list[Hearing] = []

    def accepts(media_type: str, content: bytes) -> bool:
        from clew.features.voice.recordings import is_recording  # noqa: PLC0415  (only with files)

        return is_recording(media_type, content)

    async def read(context: FeatureContext, file: FileToRead) -> FileReading:
        from clew.features.voice.hearing import Hearing  # noqa: PLC0415  (only with recordings)

        if not made:
            made.append(Hearing(service))
        return await made[0].read(context, file)

    registry.add_file_reader(
        FileReader(name="voice", read_as="transcript", accepts=accepts, read=read)
    )


def _declare_speaking(registry: Registry, service: VoiceService) -> None:
    def want_speech(t: Tx, turn: Turn) -> None:
        """Store that an answer is to be spoken, in the commit that ends its turn."""
        from clew.features.voice import speaking  # noqa: PLC0415  (once a turn)

        speaking.want_speech(t, turn, service.mode)

    async def speak(context: FeatureContext, conversation: ConversationId) -> None:
        """Speak the answers of a conversation that are to be spoken."""
        from clew.features.voice import speaking  # noqa: PLC0415  (once a turn)

        await speaking.speak_answers(context, service, conversation)

    async def speak_left(context: FeatureContext) -> None:
        """Speak the answers that a process left which has died."""
        from clew.features.voice import speaking  # noqa: PLC0415  (once a minute)

        await speaking.speak_left_answers(context, service)

    registry.add_turn_watch("voice", on_end=want_speech)
    registry.add_after_turn("voice", speak)
    registry.add_periodic(speak_left, every=timedelta(minutes=1), name="voice")
