"""Names and attributes of spans, by OpenTelemetry's conventions for generative AI."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.agent.known_secrets import redact_secrets
from clew.core.route import MAIN_AGENT, Route

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.plugin.tracing import TracedCall, TracedRequest, TracedRun

    Attributes = Mapping[str, str | int | bool | list[str]]

#: Providers whose name in the conventions differs from that in settings.
_PROVIDERS = {
    "openai-chat": "openai",
    "openai-responses": "openai",
    "azure": "azure.ai.openai",
    "azure-responses": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "google": "gcp.gen_ai",
    "google-gla": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "grok": "x_ai",
    "xai": "x_ai",
    "mistral": "mistral_ai",
    "moonshotai": "moonshot_ai",
}
AGENT_SPAN, CHAT_SPAN, TOOL_SPAN = "invoke_agent", "chat", "execute_tool"


def split_model(name: str) -> tuple[str, str]:
    """Return the provider of a model, as the conventions name it, and the model."""
    provider, separator, model = name.partition(":")
    if not separator:
        return name, name
    return _PROVIDERS.get(provider, provider), model


def describe_run(run: TracedRun) -> Attributes:
    """Return the attributes of a run at its start."""
    return {
        "gen_ai.operation.name": AGENT_SPAN,
        "gen_ai.agent.name": agent_name(run),
        "gen_ai.conversation.id": run.turn.conversation_id,
        "clew.turn.id": run.turn.id,
        "clew.platform": run.context.platform,
        "clew.turn.resumed": run.is_resumed,
    }


def agent_name(run: TracedRun) -> str:
    """Return the name of the agent that a turn runs."""
    route = run.context.route
    return MAIN_AGENT if route is None else Route.parse(route).agent


def describe_end(run: TracedRun) -> Attributes:
    """Return the attributes of a run at its end."""
    found: dict[str, str | int | bool | list[str]] = {"clew.turn.outcome": outcome_of(run)}
    if run.ended is not None:
        found["clew.turn.steps"] = run.ended.steps
        if run.ended.error_code is not None:
            found["error.type"] = run.ended.error_code
    return found


def outcome_of(run: TracedRun) -> str:
    """Return how a run has left its turn."""
    if run.ended is None:
        return "released"
    return "waiting" if run.ended.outcome is None else run.ended.outcome.value


def describe_request(one: TracedRequest) -> Attributes:
    """Return the attributes of a request at its start."""
    provider, model = split_model(one.model)
    return {
        "gen_ai.operation.name": CHAT_SPAN,
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "gen_ai.request.stream": one.stream,
        "clew.step": one.step,
    }


def describe_response(one: TracedRequest, *, content: bool) -> Attributes:
    """Return the attributes of a request at its end."""
    if one.response_model is None:
        return {}
    found: dict[str, str | int | bool | list[str]] = {
        "gen_ai.response.model": one.response_model,
        "gen_ai.usage.input_tokens": one.input_tokens,
        "gen_ai.usage.output_tokens": one.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": one.cached_tokens,
    }
    if one.response_id is not None:
        found["gen_ai.response.id"] = one.response_id
    if one.finish_reason is not None:
        found["gen_ai.response.finish_reasons"] = [one.finish_reason]
    if content and one.text:
        parts = [{"type": "text", "content": redact_secrets(one.text)}]
        said = [{"role": "assistant", "parts": parts, "finish_reason": one.finish_reason or "stop"}]
        found["gen_ai.output.messages"] = json.dumps(said, ensure_ascii=False)
    return found


def describe_call(one: TracedCall, *, content: bool) -> Attributes:
    """Return the attributes of a tool call at its start."""
    found: dict[str, str | int | bool | list[str]] = {
        "gen_ai.operation.name": TOOL_SPAN,
        "gen_ai.tool.name": one.tool,
        "gen_ai.tool.call.id": one.call_id,
        "gen_ai.tool.type": "function",
        "clew.tool.effect": one.effect.value,
    }
    if content:
        found["gen_ai.tool.call.arguments"] = redact_secrets(one.args)
    return found


def describe_result(one: TracedCall, *, content: bool) -> Attributes:
    """Return the attributes of a tool call at its end."""
    if one.status is None:
        return {"clew.tool.status": "unfinished"}
    found: dict[str, str | int | bool | list[str]] = {"clew.tool.status": one.status.value}
    if one.status.value == "error":
        found["error.type"] = "tool_error"
    if content:
        found["gen_ai.tool.call.result"] = redact_secrets(one.result)
    return found
