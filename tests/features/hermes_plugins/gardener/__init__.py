"""A plugin that changes texts, watches approvals, and decides about messages of chats."""

from __future__ import annotations

from typing import Any

told: list[tuple[str, dict[str, Any]]] = []


def register(ctx: Any) -> None:
    ctx.register_hook("transform_tool_result", rewrite_result)
    ctx.register_hook("transform_terminal_output", rewrite_output)
    ctx.register_hook("transform_llm_output", rewrite_answer)
    ctx.register_hook("pre_gateway_dispatch", sort_messages)
    ctx.register_hook("pre_approval_request", note_question)
    ctx.register_hook("post_approval_response", note_decision)
    ctx.register_tool("measure", "garden", {"type": "object", "properties": {}}, measure)
    ctx.register_hook("pre_verify", do_nothing)
    ctx.register_middleware("llm_request", do_nothing)
    ctx.register_middleware("tool_execution", do_nothing)
    ctx.register_platform("irc", "IRC", lambda: None)


def note_question(**given: Any) -> None:
    told.append(("asked", given))


def note_decision(**given: Any) -> None:
    told.append(("decided", given))


def do_nothing(**_: Any) -> None: ...


def measure(args: dict[str, Any], **_: Any) -> str:
    return "the bed is dry"


def rewrite_result(tool_name: str, result: str, **_: Any) -> str | None:
    return result.replace("dry", "wet") if tool_name == "measure" else None


def rewrite_output(command: str, output: str, returncode: int, **_: Any) -> str:
    return f"{command} gave {output} ({returncode})"


def rewrite_answer(response_text: str, **_: Any) -> str | None:
    return f"{response_text} (checked)" if "bed" in response_text else None


def sort_messages(event: Any, gateway: Any, session_store: Any, **_: Any) -> dict[str, str] | None:
    if event.source.platform.value == "telegram" and "spam" in event.text:
        return {"action": "skip", "reason": "spam"}
    if event.text.startswith("pls"):
        return {"action": "rewrite", "text": event.text.replace("pls", "please")}
    return {"action": "dance"} if event.is_command() else None
