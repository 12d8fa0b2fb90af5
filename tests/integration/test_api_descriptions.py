"""The API describes itself, and its numbers can be read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clew.testing import Fail, FakeProvider, count_user_texts
from tests.integration.api_server import always, running, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from tests.integration.api_server import Server

OPEN = ("/healthz", "/readyz", "/hooks/{name}", "/whatsapp/{name}")
PATHS = {
    "/v1/chat/completions": {"post"},
    "/v1/responses": {"post"},
    "/v1/responses/{response}": {"get", "delete"},
    "/v1/responses/{response}/cancel": {"post"},
    "/v1/responses/{response}/input_items": {"get"},
    "/ag-ui": {"post"},
    "/v1/conversations": {"post"},
    "/v1/conversations/{id}": {"get", "post", "delete"},
    "/v1/conversations/{id}/items": {"get", "post"},
    "/v1/conversations/{id}/items/{item}": {"get", "delete"},
    "/v1/models": {"get"},
    "/v1/models/{model}": {"get"},
    "/api/conversations": {"get"},
    "/api/conversations/{id}": {"get", "delete"},
    "/api/conversations/{id}/entries": {"get"},
    "/api/conversations/{id}/lineage": {"get"},
    "/api/conversations/{id}/turns/{turn}/calls/{call}": {"get"},
    "/api/conversations/{id}/export": {"get"},
    "/api/conversations/{id}/events": {"get"},
    "/api/conversations/{id}/files/{file}": {"get"},
    "/api/conversations/{id}/messages": {"post"},
    "/api/conversations/{id}/rename": {"post"},
    "/api/conversations/{id}/branch": {"post"},
    "/api/conversations/{id}/rewind": {"post"},
    "/api/conversations/{id}/compact": {"post"},
    "/api/conversations/{id}/restore": {"post"},
    "/api/conversations/{id}/close": {"post"},
    "/api/conversations/{id}/undelete": {"post"},
    "/api/search": {"get"},
    "/api/scopes": {"get"},
    "/api/approvals/{approval}": {"post"},
    "/api/grants": {"get"},
    "/api/grants/{grant}": {"delete"},
    "/api/jobs": {"get", "post"},
    "/api/jobs/{job}": {"get", "patch", "delete"},
    "/api/jobs/{job}/run": {"post"},
    "/api/jobs/{job}/pause": {"post"},
    "/api/jobs/{job}/resume": {"post"},
    "/api/jobs/{job}/fires": {"get"},
    "/api/processes": {"get"},
    "/api/processes/{process}": {"get"},
    "/api/processes/{process}/output": {"get"},
    "/api/processes/{process}/input": {"post"},
    "/api/processes/{process}/stop": {"post"},
    "/api/memory": {"get", "post"},
    "/api/memory/search": {"get"},
    "/api/memory/{fact}": {"get", "patch", "delete"},
    "/api/skills": {"get"},
    "/api/skills/{name}": {"get"},
    "/api/skills/{name}/trust": {"post", "delete"},
    "/api/goals": {"get", "post"},
    "/api/goals/{goal}": {"get"},
    "/api/goals/{goal}/rounds": {"get"},
    "/api/goals/{goal}/pause": {"post"},
    "/api/goals/{goal}/resume": {"post"},
    "/api/goals/{goal}/done": {"post"},
    "/api/goals/{goal}/stop": {"post"},
    "/api/agents": {"get"},
    "/api/agents/{task}": {"get"},
    "/api/agents/{task}/answer": {"get"},
    "/api/agents/{task}/stop": {"post"},
    "/api/agents/{task}/tell": {"post"},
    "/api/logins": {"get"},
    "/api/logins/{login}": {"delete"},
    "/api/login-codes": {"post"},
    "/api/deliveries": {"get"},
    "/api/deliveries/{delivery}/retry": {"post"},
    "/api/deliveries/{delivery}/give-up": {"post"},
    "/api/people": {"get"},
    "/api/people/let-in": {"post"},
    "/api/people/shut-out": {"post"},
    "/api/people/links": {"get"},
    "/api/people/unlink": {"post"},
    "/api/channels": {"get"},
    "/api/turns": {"get"},
    "/api/usage": {"get"},
    "/api/settings": {"get"},
    "/api/settings/{name}": {"put"},
    "/api/checks": {"post"},
    "/api/checks/repair": {"post"},
    "/api/doctor": {"post"},
    "/api/backups": {"get", "post"},
    "/api/backups/verify": {"post"},
    "/api/log": {"get"},
    "/api/plugins": {"get"},
    "/api/tools": {"get"},
    "/healthz": {"get"},
    "/readyz": {"get"},
    "/metrics": {"get"},
    "/openapi.json": {"get"},
    "/hooks/{name}": {"post"},
    "/whatsapp/{name}": {"get", "post"},
}

EVENTS = (
    "entry", "snapshot", "delta", "retracted", "tool", "turn_begun", "turn_closed", "deleted",
)  # fmt: skip


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(count_user_texts) as fake:
        yield fake


@pytest.fixture
async def server(tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path, provider=provider)) as found:
        yield found


async def test_every_path_is_described_and_every_reference_leads_somewhere(
    server: Server,
) -> None:
    answer = await server.http.get("/openapi.json")
    document: dict[str, Any] = answer.json()
    assert document["openapi"].startswith("3.1")
    assert {path: set(found) for path, found in document["paths"].items()} == PATHS
    schemas = document["components"]["schemas"]
    references = set(re.findall(r'"#/components/schemas/(\w+)"', answer.text))
    assert references <= schemas.keys()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            named = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
            assert named == re.findall(r"\{(\w+)\}", path)
            assert ("security" in operation) == (path not in OPEN)
            is_signed = method == "post" and path.startswith(("/hooks/", "/whatsapp/"))
            refuses = "security" in operation or is_signed
            assert ("401" in operation["responses"]) == refuses


async def test_no_path_hides_another(server: Server) -> None:
    for path, methods in PATHS.items():
        answer = await server.http.request("OPTIONS", re.sub(r"\{\w+\}", "any", path))
        allowed = {each.strip().lower() for each in answer.headers["allow"].split(",")}
        assert allowed - {"head"} == methods, path


async def test_the_reference_names_every_path_header_and_kind_of_event(server: Server) -> None:
    page = (Path(__file__).parents[2] / "docs/reference/http.md").read_text()
    document = (await server.http.get("/openapi.json")).json()
    operations = [each for found in document["paths"].values() for each in found.values()]
    headers = {
        each["name"]
        for operation in operations
        for each in operation["parameters"]
        if each["in"] == "header"
    }
    statuses = {status for operation in operations for status in operation["responses"]}
    missing = [path for path in PATHS if f" {path}" not in page]
    missing += [header for header in headers if f"`{header}`" not in page]
    missing += [status for status in statuses if status > "202" and f" {status}" not in page]
    missing += [name for name in EVENTS if f"`{name}`" not in page]
    assert missing == []


async def test_an_api_without_a_token_says_so(tmp_path: Path) -> None:
    async with running(settings_for(tmp_path, token=None)) as server:
        document = (await server.http.get("/openapi.json")).json()
    assert "security" not in document["paths"]["/v1/models"]["get"]


async def test_names_of_the_agent_are_listed_and_each_is_shown(server: Server) -> None:
    async with server.openai() as client:
        listed = [model.id async for model in client.models.list()]
        assert listed == ["clew", "openai-chat:fake-model"]
        for name in listed:
            assert (await client.models.retrieve(name)).id == name
            answer = await client.chat.completions.create(
                model=name, messages=[{"role": "user", "content": "hi"}]
            )
            assert answer.model == name
    missing = await server.http.get("/v1/models/gpt-7")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")


async def test_numbers_count_what_was_done(server: Server, provider: FakeProvider) -> None:
    await server.say("hello")
    provider.script = always(Fail("authentication"))
    await server.say("hello")
    await server.http.get("/nothing/here")
    numbers = await numbers_of(server)
    chat = 'method="POST",path="/v1/chat/completions"'
    assert numbers[f'clew_requests_total{{{chat},status="200"}}'] == 1
    assert numbers[f'clew_requests_total{{{chat},status="502"}}'] == 1
    assert numbers['clew_requests_total{method="any",path="none",status="404"}'] == 1
    assert numbers['clew_turns_total{outcome="answered"}'] == 1
    assert numbers['clew_turns_total{outcome="failed"}'] == 1
    assert numbers['clew_turns_total{outcome="cancelled"}'] == 0
    assert numbers["clew_turns_unfinished"] == 0
    assert numbers["clew_inbox_waiting"] == 0
    assert numbers["clew_leases_held"] == 0
    assert numbers["clew_requests_under_way"] == 1
    assert numbers['clew_store_seconds{operation="check"}'] > 0


async def numbers_of(server: Server) -> dict[str, float]:
    answer = await server.http.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.text.endswith("\n")
    families = re.findall(r"^# TYPE (\w+) (?:counter|gauge)$", answer.text, re.MULTILINE)
    samples = [line for line in answer.text.splitlines() if not line.startswith("#")]
    assert {re.split(r"[{ ]", line)[0] for line in samples} <= set(families)
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in samples)}


async def test_a_head_request_is_answered_without_a_body(server: Server) -> None:
    answer = await server.http.head("/v1/models")
    assert (answer.status_code, answer.content) == (200, b"")
    endless = await server.http.head("/api/conversations/talk/events")
    assert endless.status_code == 405
    assert endless.headers["Allow"] == "GET"
    both = await server.http.put("/api/conversations/talk")
    assert both.headers["Allow"] == "DELETE, GET, HEAD"
