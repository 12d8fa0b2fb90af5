"""Memory: facts about people and chats, which every later session of theirs is told."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from clew.features.memory.settings import MemorySettings
from clew.features.memory.tool import (
    forget,
    make_forget_facts,
    make_recall_facts,
    make_remember_facts,
    recall,
    remember,
)
from clew.plugin import Command, sql_check

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.config.settings import Settings
    from clew.core.ids import ConversationId
    from clew.plugin import CommandCall, FeatureContext, Note, Registry, TurnContext
    from clew.store.contract import Tx

#: Operations of HTTP and JSON-RPC.
OPERATIONS: Final = (
    "memory.list", "memory.get", "memory.add", "memory.edit", "memory.forget", "memory.search",
    "person.links", "person.unlink",
)  # fmt: skip

#: Invariants of facts and their changes.
CHECKS = (
    sql_check(
        "memory-versions",
        "Each change of a scope has the next version, and its facts have the last of theirs.",
        """
        SELECT NULL, NULL, s.scope, 0, 'its changes are not numbered from 1 without a gap'
        FROM memory_scope s
        WHERE s.version <> (SELECT count(*) FROM memory_change c WHERE c.scope = s.scope)
            OR s.version <> (
                SELECT COALESCE(max(c.version), 0) FROM memory_change c WHERE c.scope = s.scope
            )
        UNION ALL
        SELECT NULL, NULL, f.id, 0, 'its last change is not recorded' FROM memory_fact f
        WHERE NOT EXISTS (
            SELECT 1 FROM memory_change c
            WHERE c.scope = f.scope AND c.version = f.version AND c.fact = f.id
        )
        """,
        decide="restore the store from a backup, or write the facts again",
    ),
    sql_check(
        "memory-forgotten",
        "What is forgotten has no text, and everything else has one.",
        """
        SELECT NULL, NULL, f.id, 0, 'it is forgotten and has a text, or active and has none'
        FROM memory_fact f WHERE (f.state = 'forgotten') = (f.text IS NOT NULL)
        """,
        decide="clew memory forget ID erases the text",
    ),
    sql_check(
        "memory-proposals",
        "What is proposed has a text, and what is answered has none.",
        """
        SELECT p.conversation, NULL, p.id, 0, 'it waits and has no text, or is answered and has one'
        FROM memory_proposal p WHERE (p.state = 'proposed') = (p.text IS NULL)
        """,
        decide="/memory proposed none in its chat erases what is proposed",
    ),
    sql_check(
        "memory-sources",
        "The entry that a fact was taken from exists, or its conversation was deleted.",
        """
        SELECT f.conversation, f.seq, f.id, 0, 'it names an entry that is not there'
        FROM memory_fact f JOIN lease l ON l.conversation_id = f.conversation
        WHERE f.seq IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM entry e WHERE e.conversation_id = f.conversation AND e.seq = f.seq
        )
        """,
        decide="clew memory show ID, and clew memory forget ID if it is wrong",
    ),
)


def register(registry: Registry) -> None:
    """Register the feature."""
    settings = registry.add_settings(MemorySettings)
    registry.add_settings_check("providers", partial(_find_problems, registry))
    registry.add_migrations(
        f"{__name__}.migrations",
        of_conversation={
            "memory_mark": "conversation", "memory_extraction": "conversation",
            "memory_proposal": "conversation", "memory_prompt": "conversation",
        },
        of_scope={
            "memory_scope": "scope", "memory_fact": "scope", "memory_change": "scope",
            "memory_mark": "scope", "memory_proposal": "scope",
            "memory_withheld": "scope", "memory_file": "scope",
            "memory_link": "scope",
        },
        checks=CHECKS,
    )  # fmt: skip

    async def keep_in_step(context: FeatureContext) -> None:
        """Forget what was taken from deleted conversations, and merge files, if that is wanted."""
        if settings.get().with_conversation:
            from clew.features.memory import forgetting  # noqa: PLC0415  (needed by gateways only)

            await context.store.write(forgetting.forget_with_conversations)
        if settings.get().files:
            from clew.features.memory import file_sync  # noqa: PLC0415  (as above)

            await file_sync.sync_files(context)

    registry.add_periodic(
        keep_in_step, every=timedelta(minutes=1), name="facts of conversations and files"
    )

    async def extract_facts(context: FeatureContext) -> None:
        """Look for facts in conversations that rest."""
        from clew.features.memory import extractor  # noqa: PLC0415  (needed by gateways only)

        await extractor.extract_due(context, settings.get())

    registry.add_periodic(extract_facts, every=timedelta(minutes=1), name="facts that are found")
    registry.add_after_turn("memory", tell_proposals)
    registry.add_instructions("memory", render_core)

    def make_note(t: Tx, context: TurnContext) -> list[Note]:
        """Return the facts that have changed since the session was told."""
        from clew.features.memory import session_notes  # noqa: PLC0415  (declared by every command, needed by few)

        return session_notes.make_note(t, context, recalls=settings.get().recall == "auto")

    registry.add_context_note("memory", make_note)
    registry.add_tool(remember, effect="idempotent", facts=make_remember_facts)
    registry.add_tool(recall, effect="pure", facts=make_recall_facts)
    registry.add_tool(forget, effect="idempotent", facts=make_forget_facts)
    _add_commands(registry)
    for name in OPERATIONS:
        registry.add_operation(name, partial(_make_operation, name))


def _add_commands(registry: Registry) -> None:
    registry.add_command(
        Command(
            name="memory",
            help="list what is remembered here, show where a fact comes from, or correct it",
            run=run_memory_command,
            arguments="[n|why n|edit n TEXT|pin n|unpin n|proposed]",
        )
    )
    registry.add_command(
        Command(
            name="remember",
            help="keep a sentence for all later conversations here",
            run=run_remember_command,
            arguments="TEXT",
        )
    )
    registry.add_command(
        Command(
            name="forget",
            help="erase a fact that is remembered",
            run=run_forget_command,
            arguments="n",
        )
    )
    registry.add_command(
        Command(
            name="link",
            help="share what is remembered with your account on another platform",
            run=run_link_command,
            arguments="[code]",
        )
    )
    registry.add_command(
        Command(
            name="unlink",
            help="part this account from those with which it shares what is remembered",
            run=run_unlink_command,
        )
    )


async def render_core(context: TurnContext) -> str | None:
    """Return the facts that a session is told when it opens."""
    from clew.features.memory import session_notes  # noqa: PLC0415  (declared by every command, needed by few)

    return await context.services.store.read(session_notes.render_for, context)


async def tell_proposals(context: FeatureContext, conversation: ConversationId) -> None:
    """Tell a person what is proposed, after the answer to what they have said."""
    from clew.features.memory import telling  # noqa: PLC0415  (as above)

    if await context.store.read(telling.is_untold, context, conversation):
        owner = context.ids.new_owner_id()
        await context.store.write(telling.tell_proposals, context, conversation, owner)


async def run_memory_command(call: CommandCall, argument: str) -> str:
    """List what is remembered, show a fact, or change one."""
    from clew.features.memory import chat_commands  # noqa: PLC0415  (as above)

    return await chat_commands.run_memory(call, argument)


async def run_remember_command(call: CommandCall, argument: str) -> str:
    """Keep a sentence."""
    from clew.features.memory import chat_commands  # noqa: PLC0415  (as above)

    return await chat_commands.run_remember(call, argument)


async def run_forget_command(call: CommandCall, argument: str) -> str:
    """Erase a fact."""
    from clew.features.memory import chat_commands  # noqa: PLC0415  (as above)

    return await chat_commands.run_forget(call, argument)


async def run_link_command(call: CommandCall, argument: str) -> str:
    """Link two accounts of a person."""
    from clew.features.memory import chat_commands  # noqa: PLC0415  (as above)

    return await chat_commands.run_link(call, argument)


async def run_unlink_command(call: CommandCall, argument: str) -> str:
    """Part two accounts of a person."""
    from clew.features.memory import chat_commands  # noqa: PLC0415  (as above)

    return await chat_commands.run_unlink(call, argument)


def _find_problems(registry: Registry, loaded: Settings) -> Iterable[str]:
    settings = loaded.sections.get("memory")
    if not isinstance(settings, MemorySettings) or not settings.providers:
        return ()
    from clew.features.memory import elsewhere  # noqa: PLC0415  (few settings name any)

    return elsewhere.find_problems(registry, loaded)


def _make_operation(name: str) -> object:
    from clew.features.memory import operations  # noqa: PLC0415  (only servers need them)

    return operations.OPERATIONS[name]
